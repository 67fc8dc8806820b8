// The CUDA driver, opened at run time: libcuda.so.1 through cuGetProcAddress with fixed versions,
// so that behaviour does not depend on the toolkit this was built with. Thread-safe; lives until
// the process ends, because unloading while the driver tears itself down crashes.
#pragma once

#include "attnjit/driver_error.hpp"
#include "dynamic_library.hpp"

#include <cuda.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace attnjit {

// One pointer per entry point, named after it.
struct DriverApi {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDriverGetVersion) driver_get_version = nullptr;
  decltype(&::cuGetErrorName) get_error_name = nullptr;
  decltype(&::cuGetErrorString) get_error_string = nullptr;

  decltype(&::cuDeviceGetCount) device_get_count = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetName) device_get_name = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;

  decltype(&::cuDevicePrimaryCtxRetain) device_primary_ctx_retain = nullptr;
  decltype(&::cuCtxGetCurrent) ctx_get_current = nullptr;
  decltype(&::cuCtxSetCurrent) ctx_set_current = nullptr;
  decltype(&::cuCtxPushCurrent) ctx_push_current = nullptr;
  decltype(&::cuCtxPopCurrent) ctx_pop_current = nullptr;
  decltype(&::cuCtxGetDevice) ctx_get_device = nullptr;
  decltype(&::cuCtxSynchronize) ctx_synchronize = nullptr;

  decltype(&::cuLibraryLoadData) library_load_data = nullptr;
  decltype(&::cuLibraryUnload) library_unload = nullptr;
  decltype(&::cuLibraryGetKernel) library_get_kernel = nullptr;
  decltype(&::cuKernelGetFunction) kernel_get_function = nullptr;
  decltype(&::cuKernelSetAttribute) kernel_set_attribute = nullptr;
  decltype(&::cuLaunchKernelEx) launch_kernel_ex = nullptr;
  decltype(&::cuTensorMapEncodeTiled) tensor_map_encode_tiled = nullptr;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy_max_active_blocks = nullptr;

  decltype(&::cuPointerGetAttribute) pointer_get_attribute = nullptr;
  decltype(&::cuMemAlloc) mem_alloc = nullptr;
  decltype(&::cuMemFree) mem_free = nullptr;
  decltype(&::cuMemcpyHtoD) memcpy_host_to_device = nullptr;
  decltype(&::cuMemcpyDtoH) memcpy_device_to_host = nullptr;
  decltype(&::cuMemcpyHtoDAsync) memcpy_host_to_device_async = nullptr;
  decltype(&::cuMemcpyDtoHAsync) memcpy_device_to_host_async = nullptr;
  decltype(&::cuMemcpyDtoDAsync) memcpy_device_to_device_async = nullptr;
  decltype(&::cuMemsetD8Async) memset_d8_async = nullptr;
  decltype(&::cuMemsetD32Async) memset_d32_async = nullptr;

  decltype(&::cuStreamCreate) stream_create = nullptr;
  decltype(&::cuStreamDestroy) stream_destroy = nullptr;
  decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cuStreamGetCtx) stream_get_ctx = nullptr;
  decltype(&::cuStreamIsCapturing) stream_is_capturing = nullptr;
  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventSynchronize) event_synchronize = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;

  decltype(&::cuStreamBeginCapture) stream_begin_capture = nullptr;
  decltype(&::cuStreamEndCapture) stream_end_capture = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) graph_instantiate = nullptr;
  decltype(&::cuGraphLaunch) graph_launch = nullptr;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&::cuGraphDestroy) graph_destroy = nullptr;
};

class Driver {
 public:
  // The driver of this process: what $ATTNJIT_LIBCUDA names, else libcuda.so.1. Opened and
  // initialised at the first call; throws DriverError, at every call, while that fails.
  static const Driver& instance();

  // Opens and initialises the driver library `path`. Throws DriverError.
  explicit Driver(const std::filesystem::path& path);

  const DriverApi& api() const { return api_; }
  int version() const { return version_; }  // 1000 * major + 10 * minor, e.g. 13000
  std::filesystem::path path() const { return library_.path(); }

  // Throws CudaError, naming `call`, unless `result` is success.
  void check(CUresult result, const char* call) const {
    if (result != CUDA_SUCCESS) {
      fail(result, call);
    }
  }
  [[noreturn]] void fail(CUresult result, const std::string& call) const;

  int device_count() const;
  int attribute(int ordinal, CUdevice_attribute attribute) const;

  // The primary context of a device, the one the CUDA runtime and PyTorch use. Retained at the
  // first call and kept.
  CUcontext primary_context(int ordinal) const;

 private:
  void bind_entry_points();
  void initialize();

  DynamicLibrary library_;
  DriverApi api_;
  int version_ = 0;
  mutable std::mutex contexts_mutex_;
  mutable std::vector<CUcontext> contexts_;  // by ordinal; null until retained
};

// Makes a context current to this thread for a scope, whatever was current before.
class ScopedContext {
 public:
  ScopedContext(const Driver& driver, CUcontext context);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const Driver& driver_;
};

}  // namespace attnjit
