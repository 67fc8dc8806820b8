#include "attnjit/loaded_kernel.hpp"

#include "driver.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

namespace attnjit {

struct LoadedCubin::State {
  State(const Driver& loading_driver, KernelShape kernel_shape)
      : driver(loading_driver), shape(std::move(kernel_shape)) {}

  const Driver& driver;
  KernelShape shape;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  std::mutex mutex;
  std::set<int> ready_devices;  // guarded by mutex
};

namespace {

void check(const Driver& driver, CUresult result, const char* call, const KernelShape& shape) {
  if (result != CUDA_SUCCESS) {
    driver.fail(result, fmt::format("{} of kernel {}", call, shape.entry));
  }
}

// Loading is lazy: without asking for the function, the first launch would do the work, and fail if
// it is being captured into a graph. The attribute is set here and never again, because setting it
// takes locks, and lowering it from another thread breaks launches.
void make_ready(const Driver& driver, CUkernel kernel, const KernelShape& shape, int ordinal) {
  const ScopedContext current(driver, driver.primary_context(ordinal));
  const DriverApi& api = driver.api();
  CUfunction function = nullptr;
  check(driver, api.kernel_get_function(&function, kernel), "cuKernelGetFunction", shape);
  CUdevice device = 0;
  check(driver, api.device_get(&device, ordinal), "cuDeviceGet", shape);
  check(driver,
        api.kernel_set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 shape.shared_memory_bytes, kernel, device),
        "cuKernelSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)", shape);
}

}  // namespace

LoadedCubin::LoadedCubin(const Driver& driver, const std::string& cubin, KernelShape shape)
    : state_(std::make_unique<State>(driver, std::move(shape))) {
  const DriverApi& api = driver.api();
  check(driver,
        api.library_load_data(&state_->library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr,
                              0),
        "cuLibraryLoadData", state_->shape);
  check(driver,
        api.library_get_kernel(&state_->kernel, state_->library, state_->shape.entry.c_str()),
        "cuLibraryGetKernel", state_->shape);
}

LoadedCubin::LoadedCubin(const std::string& cubin, KernelShape shape)
    : LoadedCubin(Driver::instance(), cubin, std::move(shape)) {}

LoadedCubin::~LoadedCubin() = default;

LoadedKernel LoadedCubin::on_device(int ordinal) {
  const KernelShape& shape = state_->shape;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->ready_devices.contains(ordinal)) {
      make_ready(state_->driver, state_->kernel, shape, ordinal);
      state_->ready_devices.insert(ordinal);
    }
  }
  return {.driver = &state_->driver,
          .kernel = state_->kernel,
          .device = ordinal,
          .context = state_->driver.primary_context(ordinal),
          .num_threads = static_cast<unsigned>(shape.num_threads),
          .shared_memory_bytes = static_cast<unsigned>(shape.shared_memory_bytes),
          .entry = shape.entry.c_str()};
}

void LoadedCubin::unload() {
  const std::lock_guard lock(state_->mutex);
  if (state_->library != nullptr) {
    state_->driver.check(state_->driver.api().library_unload(state_->library), "cuLibraryUnload");
    state_->library = nullptr;
    state_->kernel = nullptr;
    state_->ready_devices.clear();
  }
}

}  // namespace attnjit
