#include "attnjit/target_device.hpp"

#include <algorithm>
#include <set>

#include "catch.hpp"

namespace {

using namespace attnjit;

constexpr int kib = 1024;

TEST_CASE("every preset is found by its name and no name is used twice") {
  std::set<std::string> names;
  for (const TargetDevice& device : target_device_presets()) {
    CHECK(names.insert(device.name).second);
    REQUIRE(find_target_device(device.name).has_value());
    CHECK(find_target_device(device.name)->num_sms == device.num_sms);
  }
}

TEST_CASE("an architecture stands for the first card listed with it") {
  CHECK(find_target_device("sm_80")->name == "a100");
  CHECK(find_target_device("sm_86")->name == "rtx3090");
  CHECK(find_target_device("sm_89")->name == "rtx4090");
  CHECK(find_target_device("sm_90a")->name == "h100");
  CHECK(find_target_device("sm_100")->name == "b200");
  CHECK(find_target_device("sm_120")->name == "rtx5090");
}

TEST_CASE("a name that is neither a card nor an architecture finds nothing") {
  for (const char* name : {"", "h100x", "H100", "sm_", "sm_70", "90a"}) {
    CHECK(!find_target_device(name).has_value());
  }
}

TEST_CASE("the architecture of a preset is its compute capability, with the suffix on Hopper") {
  for (const TargetDevice& device : target_device_presets()) {
    const std::string suffix = device.compute_capability == 90 ? "a" : "";
    CHECK(device.arch == "sm_" + std::to_string(device.compute_capability) + suffix);
  }
}

TEST_CASE("presets are ordered by architecture") {
  const auto presets = target_device_presets();
  CHECK(std::is_sorted(presets.begin(), presets.end(), [](const auto& left, const auto& right) {
    return left.compute_capability < right.compute_capability;
  }));
}

// CUDA C++ Programming Guide: shared memory per multiprocessor of each compute capability.
TEST_CASE("a preset has its architecture's shared memory, of which the driver keeps 1 KiB") {
  for (const TargetDevice& device : target_device_presets()) {
    const int major = device.compute_capability / 10;
    const int expected = device.compute_capability == 80 ? 164 * kib
                         : major == 9 || major == 10     ? 228 * kib
                                                         : 100 * kib;
    CHECK(device.shared_memory_per_sm == expected);
    CHECK(device.shared_memory_per_block == expected - kib);
  }
}

TEST_CASE("counts of a preset are plausible for a card of today") {
  for (const TargetDevice& device : target_device_presets()) {
    CHECK(device.num_sms >= 16);
    CHECK(device.num_sms <= 256);
    CHECK(device.l2_bytes >= 4 * kib * kib);
    CHECK(device.l2_bytes <= 256 * kib * kib);
  }
}

}  // namespace
