// The main of test executables that launch kernels. Where the machine has no GPU they are skipped,
// with the reason; a GPU that is there and does not answer is a failure.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "catch_session.hpp"

namespace {

constexpr int exit_skipped = 77;  // CTest's SKIP_RETURN_CODE, and what tools/gpu_check reads
constexpr int no_device_error = 100;
constexpr int stub_library_error = 34;

enum class Outcome { usable, absent, faulty };

struct DeviceState {
  Outcome outcome = Outcome::usable;
  std::string reason;
};

// The kernel driver's device files: /dev/nvidia0 and up.
bool has_device_file() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == name.npos &&
        name.size() > 6) {
      return true;
    }
  }
  return false;
}

// Where no device file is, a driver that does not answer is no fault.
DeviceState without_driver(const std::string& reason) {
  if (has_device_file()) {
    return {Outcome::faulty, "/dev has an NVIDIA device, but " + reason};
  }
  return {Outcome::absent, "no NVIDIA device in /dev, and " + reason};
}

DeviceState probe_device() {
  using Init = int (*)(unsigned);
  using GetCount = int (*)(int*);
  // Never closed: the tests open it again, and the driver does not like to be unloaded.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) {
    return without_driver("libcuda.so.1 cannot be opened");
  }
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto get_count = reinterpret_cast<GetCount>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || get_count == nullptr) {
    return without_driver("libcuda.so.1 lacks cuInit or cuDeviceGetCount");
  }
  const int status = init(0);
  if (status == no_device_error && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) {
    return {Outcome::absent, "CUDA_VISIBLE_DEVICES leaves no device"};
  }
  if (status == stub_library_error) {
    return without_driver("libcuda.so.1 is the toolkit's stub");
  }
  if (status != 0) {
    return without_driver("cuInit fails with error " + std::to_string(status));
  }
  int count = 0;
  if (get_count(&count) != 0 || count == 0) {
    return without_driver("cuDeviceGetCount finds no device");
  }
  return {};
}

// CMake asks for the names of the tests while building, where no GPU need be.
bool only_lists(int argument_count, char** arguments) {
  for (int i = 1; i < argument_count; ++i) {
    if (std::string_view(arguments[i]).starts_with("--list")) {
      return true;
    }
  }
  return false;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (!only_lists(argument_count, arguments)) {
    const DeviceState state = probe_device();
    if (state.outcome == Outcome::absent) {
      std::printf("skipped: %s\n", state.reason.c_str());
      return exit_skipped;
    }
    if (state.outcome == Outcome::faulty) {
      std::printf("failed: %s\n", state.reason.c_str());
      return EXIT_FAILURE;
    }
  }
  return attnjit::testing::run_catch_session(argument_count, arguments);
}
