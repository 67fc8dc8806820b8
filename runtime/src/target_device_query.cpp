#include "attnjit/target_device_query.hpp"

#include "driver.hpp"

#include <fmt/format.h>

#include <array>

namespace attnjit {
namespace {

constexpr int only_with_wgmma = 90;  // wgmma and setmaxnreg exist for sm_90a alone

std::string device_name(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  std::array<char, 256> name{};
  driver.check(driver.api().device_get(&device, ordinal), "cuDeviceGet");
  driver.check(driver.api().device_get_name(name.data(), static_cast<int>(name.size() - 1), device),
               "cuDeviceGetName");
  return name.data();
}

}  // namespace

DriverDescription describe_driver() {
  const Driver& driver = Driver::instance();
  return {.version = driver.version(), .path = driver.path()};
}

int count_devices() {
  return Driver::instance().device_count();
}

TargetDevice query_target_device(int ordinal) {
  return query_target_device(Driver::instance(), ordinal);
}

TargetDevice query_target_device(const Driver& driver, int ordinal) {
  const auto attribute = [&](CUdevice_attribute which) { return driver.attribute(ordinal, which); };
  const int capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return {
      .name = device_name(driver, ordinal),
      .arch = fmt::format("sm_{}{}", capability, capability == only_with_wgmma ? "a" : ""),
      .compute_capability = capability,
      .num_sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      .shared_memory_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
      .shared_memory_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
      .l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
  };
}

}  // namespace attnjit
