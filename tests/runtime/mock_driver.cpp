// A libcuda.so.1 without a GPU: records what it is asked. Handles are small numbers as pointers.
#include "mock_driver.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

#include "interface/append_kv_cache_arguments.h"
#include "interface/merge_states_arguments.h"
#include "interface/prefill_arguments.h"
#include "interface/seesaw_decode_arguments.h"
#include "interface/sparse_mla_arguments.h"
#include "interface/swapped_decode_arguments.h"

using attnjit::test::MockDriver;
namespace kernel_interface = attnjit::kernel_interface;

extern "C" MockDriver* attnjit_mock_driver() {
  static MockDriver driver;
  return &driver;
}

namespace {

constexpr std::uintptr_t first_context = 0x1000;
constexpr std::uintptr_t library_handle = 0x2000;
constexpr std::uintptr_t first_kernel = 0x3000;  // the i-th of kernel_names: i more
constexpr std::uintptr_t function_handle = 0x4000;

MockDriver& mock() {
  return *attnjit_mock_driver();
}

std::mutex& record_mutex() {
  static std::mutex mutex;
  return mutex;
}

CUcontext current_context() {
  return mock().context_stack.empty() ? nullptr : mock().context_stack.back();
}

// As a driver knows it from the cubin.
std::size_t argument_bytes(const std::string& kernel) {
  static const std::map<std::string, std::size_t> sizes = {
      {"schedule_decode", sizeof(kernel_interface::ScheduleArguments)},
      {"paged_decode_sm80", sizeof(kernel_interface::PagedDecodeArguments)},
      {"swapped_decode_sm90", sizeof(kernel_interface::SwappedDecodeArguments)},
      {"seesaw_decode_sm90", sizeof(kernel_interface::SeesawDecodeArguments)},
      {"combine_splits", sizeof(kernel_interface::CombineArguments)},
      {"prefill_sm80", sizeof(kernel_interface::PrefillArguments)},
      {"combine_prefill", sizeof(kernel_interface::PrefillArguments)},
      {"sparse_mla_sm80", sizeof(kernel_interface::SparseMlaArguments)},
      {"append_kv_cache", sizeof(kernel_interface::AppendKvCacheArguments)},
      {"merge_states", sizeof(kernel_interface::MergeStatesArguments)},
  };
  constexpr std::size_t of_other_kernels = 64;
  const auto found = sizes.find(kernel);
  return found != sizes.end() ? found->second : of_other_kernels;
}

std::string kernel_name(CUfunction function) {
  const std::uintptr_t index = reinterpret_cast<std::uintptr_t>(function) - first_kernel;
  return index < mock().kernel_names.size() ? mock().kernel_names[index] : "";
}

CUresult mock_init(unsigned) {
  return mock().init_result;
}

CUresult mock_driver_get_version(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult mock_get_error_name(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_MOCK";
  return CUDA_SUCCESS;
}

CUresult mock_get_error_string(CUresult, const char** text) {
  *text = "the mock was told to fail";
  return CUDA_SUCCESS;
}

CUresult mock_device_get_count(int* count) {
  *count = mock().device_count;
  return CUDA_SUCCESS;
}

CUresult mock_device_get(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= mock().device_count) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult mock_device_get_name(char* name, int length, CUdevice device) {
  std::strncpy(name, device == 0 ? "Mock GPU 0" : "Mock GPU 1", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult mock_device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const auto found = mock().attributes.find(attribute);
  *value = found != mock().attributes.end() ? found->second : 0;
  return CUDA_SUCCESS;
}

CUresult mock_primary_ctx_retain(CUcontext* context, CUdevice device) {
  const std::lock_guard lock(record_mutex());
  mock().retained_devices.push_back(device);
  *context = reinterpret_cast<CUcontext>(first_context + static_cast<std::uintptr_t>(device));
  return CUDA_SUCCESS;
}

CUresult mock_ctx_push(CUcontext context) {
  const std::lock_guard lock(record_mutex());
  if (mock().context_result == CUDA_SUCCESS) {
    mock().context_stack.push_back(context);
  }
  return mock().context_result;
}

CUresult mock_ctx_pop(CUcontext* context) {
  const std::lock_guard lock(record_mutex());
  *context = current_context();
  mock().context_stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult mock_library_load_data(CUlibrary* library, const void* code, CUjit_option*, void**,
                                unsigned, CUlibraryOption*, void**, unsigned) {
  const std::lock_guard lock(record_mutex());
  if (mock().load_result == CUDA_SUCCESS) {
    mock().loaded_cubins.emplace_back(static_cast<const char*>(code));
    *library = reinterpret_cast<CUlibrary>(library_handle);
  }
  return mock().load_result;
}

CUresult mock_library_unload(CUlibrary library) {
  const std::lock_guard lock(record_mutex());
  mock().unloaded.push_back(library);
  return CUDA_SUCCESS;
}

CUresult mock_library_get_kernel(CUkernel* kernel, CUlibrary, const char* name) {
  const std::lock_guard lock(record_mutex());
  *kernel = reinterpret_cast<CUkernel>(first_kernel + mock().kernel_names.size());
  mock().kernel_names.emplace_back(name);
  return CUDA_SUCCESS;
}

CUresult mock_kernel_get_function(CUfunction* function, CUkernel) {
  const std::lock_guard lock(record_mutex());
  ++mock().functions_got;
  *function = reinterpret_cast<CUfunction>(function_handle);
  return current_context() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult mock_kernel_set_attribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                   CUdevice device) {
  const std::lock_guard lock(record_mutex());
  mock().set_attributes.push_back({attribute, value, kernel, device, current_context()});
  return CUDA_SUCCESS;
}

void record_launch(const CUlaunchConfig& config, CUfunction function, const void* arguments) {
  const std::string kernel = kernel_name(function);
  const auto* first = static_cast<const std::byte*>(arguments);
  mock().launches.push_back({.config = config,
                             .attributes = {config.attrs, config.attrs + config.numAttrs},
                             .function = function,
                             .kernel = kernel,
                             .arguments = {first, first + argument_bytes(kernel)},
                             .context = current_context()});
}

CUresult mock_launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  if (mock().on_launch) {
    mock().on_launch();
  }
  const std::lock_guard lock(record_mutex());
  if (config->hStream == nullptr && current_context() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  ++mock().num_launches;
  if (mock().keeps_calls) {
    record_launch(*config, function, parameters[0]);
  }
  return mock().launch_result;
}

CUresult mock_tensor_map_encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* base, const cuuint64_t* extents, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const std::lock_guard lock(record_mutex());
  if (!mock().keeps_calls) {
    return mock().encode_result;
  }
  mock().tensor_maps.push_back({type,
                                base,
                                {extents, extents + rank},
                                {strides, strides + rank - 1},
                                {box, box + rank},
                                {steps, steps + rank},
                                interleave,
                                swizzle,
                                promotion,
                                fill});
  map->opaque[15] = mock().tensor_maps.size();
  return mock().encode_result;
}

CUresult mock_mem_alloc(CUdeviceptr* pointer, std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  const std::lock_guard lock(record_mutex());
  if (mock().allocation_result != CUDA_SUCCESS) {
    return mock().allocation_result;
  }
  if (bytes > mock().most_bytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* const memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  *pointer = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
  mock().allocations[*pointer] = bytes;
  return memory != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult mock_mem_free(CUdeviceptr pointer) {
  const std::lock_guard lock(record_mutex());
  if (mock().allocations.erase(pointer) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer)));
  return CUDA_SUCCESS;
}

CUresult mock_pointer_get_attribute(void* value, CUpointer_attribute, CUdeviceptr pointer) {
  const std::lock_guard lock(record_mutex());
  const auto& allocations = mock().allocations;
  auto next = allocations.upper_bound(pointer);
  const bool is_allocated =
      next != allocations.begin() && pointer - std::prev(next)->first < std::prev(next)->second;
  if (!is_allocated && pointer < MockDriver::device_memory) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}

CUresult mock_memcpy_to_device(CUdeviceptr destination, const void* source, std::size_t bytes,
                               CUstream) {
  std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(destination)), source, bytes);
  return CUDA_SUCCESS;
}

// Of the legacy stream, a driver must know the context.
CUresult mock_stream_is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  const std::lock_guard lock(record_mutex());
  if (stream == nullptr && current_context() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (stream == nullptr && mock().is_capturing_implicitly) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  *status = mock().is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult mock_nothing() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* find_entry(const std::string& name) {
  static const std::map<std::string, void*> entries = {
      {"cuInit", address_of(mock_init)},
      {"cuDriverGetVersion", address_of(mock_driver_get_version)},
      {"cuGetErrorName", address_of(mock_get_error_name)},
      {"cuGetErrorString", address_of(mock_get_error_string)},
      {"cuDeviceGetCount", address_of(mock_device_get_count)},
      {"cuDeviceGet", address_of(mock_device_get)},
      {"cuDeviceGetName", address_of(mock_device_get_name)},
      {"cuDeviceGetAttribute", address_of(mock_device_get_attribute)},
      {"cuDevicePrimaryCtxRetain", address_of(mock_primary_ctx_retain)},
      {"cuCtxPushCurrent", address_of(mock_ctx_push)},
      {"cuCtxPopCurrent", address_of(mock_ctx_pop)},
      {"cuLibraryLoadData", address_of(mock_library_load_data)},
      {"cuLibraryUnload", address_of(mock_library_unload)},
      {"cuLibraryGetKernel", address_of(mock_library_get_kernel)},
      {"cuKernelGetFunction", address_of(mock_kernel_get_function)},
      {"cuKernelSetAttribute", address_of(mock_kernel_set_attribute)},
      {"cuLaunchKernelEx", address_of(mock_launch)},
      {"cuTensorMapEncodeTiled", address_of(mock_tensor_map_encode)},
      {"cuMemAlloc", address_of(mock_mem_alloc)},
      {"cuMemFree", address_of(mock_mem_free)},
      {"cuPointerGetAttribute", address_of(mock_pointer_get_attribute)},
      {"cuMemcpyHtoDAsync", address_of(mock_memcpy_to_device)},
      {"cuStreamIsCapturing", address_of(mock_stream_is_capturing)},
  };
  const auto found = entries.find(name);
  return found != entries.end() ? found->second : address_of(mock_nothing);
}

}  // namespace

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t,
                                        CUdriverProcAddressQueryResult*) {
  if (mock().every_result != CUDA_SUCCESS) {
    return mock().every_result;
  }
  mock().asked_versions[name] = version;
  *address = name == mock().missing_name ? nullptr : find_entry(name);
  return CUDA_SUCCESS;
}
