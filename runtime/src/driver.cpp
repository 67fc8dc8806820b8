#include "driver.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace attnjit {
namespace {

constexpr const char* driver_variable = "ATTNJIT_LIBCUDA";
constexpr int oldest_version = 12000;  // of every entry point: context-independent loading

DynamicLibrary open_library(const std::filesystem::path& path) {
  try {
    return DynamicLibrary(path);
  } catch (const LibraryError& error) {
    throw DriverError(
        DriverProblem::absent,
        fmt::format("no CUDA driver: {}. Running kernels needs an NVIDIA driver (525 or newer), in "
                    "a container also the container toolkit; rendering, compiling and warming do "
                    "not",
                    error.what()));
  }
}

[[noreturn]] void fail_on_stub(const std::filesystem::path& path) {
  throw DriverError(
      DriverProblem::stub,
      fmt::format("{} is the CUDA toolkit's stub, not a driver: take its directory off "
                  "LD_LIBRARY_PATH, and install an NVIDIA driver if there is none",
                  path.string()));
}

class EntryPoints {
 public:
  explicit EntryPoints(const DynamicLibrary& library) : path_(library.path()) {
    // Plain dlsym would find the oldest version of a name; only this one is asked for so.
    lookup_ = reinterpret_cast<decltype(lookup_)>(library.find("cuGetProcAddress_v2"));
    if (lookup_ == nullptr) {
      fail("cuGetProcAddress_v2");
    }
  }

  template <typename Function>
  void bind(Function*& function, const char* name) const {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result =
        lookup_(name, &address, oldest_version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    if (result == CUDA_ERROR_STUB_LIBRARY) {
      fail_on_stub(path_);
    }
    if (result != CUDA_SUCCESS || address == nullptr) {
      fail(name);
    }
    function = reinterpret_cast<Function*>(address);
  }

 private:
  [[noreturn]] void fail(const char* name) const {
    throw DriverError(DriverProblem::too_old,
                      fmt::format("the CUDA driver {} has no {}: driver 525 (CUDA 12.0) or newer "
                                  "is needed",
                                  path_.string(), name));
  }

  std::filesystem::path path_;
  decltype(&::cuGetProcAddress) lookup_ = nullptr;
};

void bind_devices(const EntryPoints& entries, DriverApi& api) {
  entries.bind(api.init, "cuInit");
  entries.bind(api.driver_get_version, "cuDriverGetVersion");
  entries.bind(api.get_error_name, "cuGetErrorName");
  entries.bind(api.get_error_string, "cuGetErrorString");
  entries.bind(api.device_get_count, "cuDeviceGetCount");
  entries.bind(api.device_get, "cuDeviceGet");
  entries.bind(api.device_get_name, "cuDeviceGetName");
  entries.bind(api.device_get_attribute, "cuDeviceGetAttribute");
  entries.bind(api.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  entries.bind(api.ctx_get_current, "cuCtxGetCurrent");
  entries.bind(api.ctx_set_current, "cuCtxSetCurrent");
  entries.bind(api.ctx_push_current, "cuCtxPushCurrent");
  entries.bind(api.ctx_pop_current, "cuCtxPopCurrent");
  entries.bind(api.ctx_get_device, "cuCtxGetDevice");
  entries.bind(api.ctx_synchronize, "cuCtxSynchronize");
}

void bind_kernels(const EntryPoints& entries, DriverApi& api) {
  entries.bind(api.library_load_data, "cuLibraryLoadData");
  entries.bind(api.library_unload, "cuLibraryUnload");
  entries.bind(api.library_get_kernel, "cuLibraryGetKernel");
  entries.bind(api.kernel_get_function, "cuKernelGetFunction");
  entries.bind(api.kernel_set_attribute, "cuKernelSetAttribute");
  entries.bind(api.launch_kernel_ex, "cuLaunchKernelEx");
  entries.bind(api.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  entries.bind(api.occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

void bind_memory(const EntryPoints& entries, DriverApi& api) {
  entries.bind(api.pointer_get_attribute, "cuPointerGetAttribute");
  entries.bind(api.mem_alloc, "cuMemAlloc");
  entries.bind(api.mem_free, "cuMemFree");
  entries.bind(api.memcpy_host_to_device, "cuMemcpyHtoD");
  entries.bind(api.memcpy_device_to_host, "cuMemcpyDtoH");
  entries.bind(api.memcpy_host_to_device_async, "cuMemcpyHtoDAsync");
  entries.bind(api.memcpy_device_to_host_async, "cuMemcpyDtoHAsync");
  entries.bind(api.memcpy_device_to_device_async, "cuMemcpyDtoDAsync");
  entries.bind(api.memset_d8_async, "cuMemsetD8Async");
  entries.bind(api.memset_d32_async, "cuMemsetD32Async");
}

void bind_streams(const EntryPoints& entries, DriverApi& api) {
  entries.bind(api.stream_create, "cuStreamCreate");
  entries.bind(api.stream_destroy, "cuStreamDestroy");
  entries.bind(api.stream_synchronize, "cuStreamSynchronize");
  entries.bind(api.stream_get_ctx, "cuStreamGetCtx");
  entries.bind(api.stream_is_capturing, "cuStreamIsCapturing");
  entries.bind(api.event_create, "cuEventCreate");
  entries.bind(api.event_record, "cuEventRecord");
  entries.bind(api.event_synchronize, "cuEventSynchronize");
  entries.bind(api.event_elapsed_time, "cuEventElapsedTime");
  entries.bind(api.event_destroy, "cuEventDestroy");
  entries.bind(api.stream_begin_capture, "cuStreamBeginCapture");
  entries.bind(api.stream_end_capture, "cuStreamEndCapture");
  entries.bind(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  entries.bind(api.graph_launch, "cuGraphLaunch");
  entries.bind(api.graph_exec_destroy, "cuGraphExecDestroy");
  entries.bind(api.graph_destroy, "cuGraphDestroy");
}

std::string meaning(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.get_error_name(result, &name);
  api.get_error_string(result, &text);
  return fmt::format("{} ({}): {}", name != nullptr ? name : "unknown error",
                     static_cast<int>(result), text != nullptr ? text : "no description");
}

// A driver that was asked for by name and cannot be used is a mistake, not a machine without one.
const Driver* open_named_driver(const char* named) {
  try {
    return new Driver(named);
  } catch (const DriverError& error) {
    const bool is_absent = error.problem() == DriverProblem::absent;
    throw DriverError(
        is_absent ? DriverProblem::failed : error.problem(),
        fmt::format("{} = {}: {}; fix: unset {}, or name the libcuda.so.1 of an NVIDIA driver",
                    driver_variable, named, error.what(), driver_variable));
  }
}

}  // namespace

const Driver& Driver::instance() {
  static const Driver* const driver = [] {
    const char* named = std::getenv(driver_variable);
    return named != nullptr && *named != '\0' ? open_named_driver(named)
                                              : new Driver("libcuda.so.1");
  }();
  return *driver;
}

Driver::Driver(const std::filesystem::path& path) : library_(open_library(path)) {
  bind_entry_points();
  initialize();
}

void Driver::bind_entry_points() {
  const EntryPoints entries(library_);
  bind_devices(entries, api_);
  bind_kernels(entries, api_);
  bind_memory(entries, api_);
  bind_streams(entries, api_);
}

void Driver::initialize() {
  const CUresult result = api_.init(0);
  if (result == CUDA_ERROR_STUB_LIBRARY) {
    fail_on_stub(library_.path());
  }
  if (result == CUDA_ERROR_NO_DEVICE) {
    throw DriverError(DriverProblem::no_device,
                      fmt::format("the CUDA driver {} finds no GPU (is CUDA_VISIBLE_DEVICES set?)",
                                  library_.path().string()));
  }
  if (result != CUDA_SUCCESS) {
    throw DriverError(DriverProblem::failed,
                      fmt::format("the CUDA driver {} does not start: cuInit failed with {}",
                                  library_.path().string(), meaning(api_, result)));
  }
  check(api_.driver_get_version(&version_), "cuDriverGetVersion");
  contexts_.resize(static_cast<std::size_t>(device_count()), nullptr);
}

void Driver::fail(CUresult result, const std::string& call) const {
  throw CudaError(result, fmt::format("{} failed with {}", call, meaning(api_, result)));
}

int Driver::device_count() const {
  int count = 0;
  check(api_.device_get_count(&count), "cuDeviceGetCount");
  return count;
}

int Driver::attribute(int ordinal, CUdevice_attribute attribute) const {
  CUdevice device = 0;
  int value = 0;
  check(api_.device_get(&device, ordinal), "cuDeviceGet");
  check(api_.device_get_attribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

CUcontext Driver::primary_context(int ordinal) const {
  CUdevice device = 0;
  check(api_.device_get(&device, ordinal), "cuDeviceGet");
  const std::lock_guard lock(contexts_mutex_);
  CUcontext& context = contexts_.at(static_cast<std::size_t>(ordinal));
  if (context == nullptr) {
    check(api_.device_primary_ctx_retain(&context, device), "cuDevicePrimaryCtxRetain");
  }
  return context;
}

ScopedContext::ScopedContext(const Driver& driver, CUcontext context) : driver_(driver) {
  driver_.check(driver_.api().ctx_push_current(context), "cuCtxPushCurrent");
}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  driver_.api().ctx_pop_current(&popped);  // nothing can be done if the driver is gone
}

}  // namespace attnjit
