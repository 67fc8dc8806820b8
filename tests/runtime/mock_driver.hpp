// The state of the mock libcuda.so.1 (mock_driver.cpp): how it shall behave, and what it was asked.
// The tests open the mock as a driver and reach this through mock_driver(). Calls may come from any
// thread; not thread-safe to read while they are under way.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace attnjit::test {

struct SetAttribute {
  CUfunction_attribute attribute;
  int value;
  CUkernel kernel;
  CUdevice device;
  CUcontext context;  // current at the call
};

struct Launch {
  CUlaunchConfig config;
  std::vector<CUlaunchAttribute> attributes;
  CUfunction function;
  std::string kernel;                // entry name
  std::vector<std::byte> arguments;  // the first parameter: of kernels that templates/ does not
                                     // have, its first 64 bytes
  CUcontext context;                 // current at the call
};

// The first parameter of a launch as what it is, e.g. a CombineArguments.
template <typename Arguments>
Arguments arguments_of(const Launch& launch) {
  Arguments arguments = {};
  std::memcpy(static_cast<void*>(&arguments), launch.arguments.data(),
              std::min(sizeof arguments, launch.arguments.size()));
  return arguments;
}

struct EncodedTensorMap {
  CUtensorMapDataType type;
  void* base;
  std::vector<cuuint64_t> extents;
  std::vector<cuuint64_t> strides;
  std::vector<cuuint32_t> box;
  std::vector<cuuint32_t> steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

struct MockDriver {
  // Behaviour.
  CUresult every_result = CUDA_SUCCESS;  // of cuGetProcAddress too: what the toolkit's stub does
  CUresult init_result = CUDA_SUCCESS;
  CUresult load_result = CUDA_SUCCESS;
  CUresult launch_result = CUDA_SUCCESS;
  CUresult encode_result = CUDA_SUCCESS;
  CUresult allocation_result = CUDA_SUCCESS;
  std::size_t most_bytes = std::size_t{1} << 32;  // of one allocation
  CUresult context_result = CUDA_SUCCESS;         // of cuCtxPushCurrent
  std::string missing_name;                       // an entry point it does not have
  int device_count = 2;
  std::map<CUdevice_attribute, int> attributes = {  // of an H200
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560}};
  bool is_capturing = false;             // every stream
  bool is_capturing_implicitly = false;  // another stream, which the legacy stream waits for
  std::function<void()> on_launch;       // called by each launch
  bool keeps_calls = true;               // false: launches and tensor maps are counted only
  // What cuMemAlloc gave, and how many bytes; host memory, 256-byte aligned.
  std::map<CUdeviceptr, std::size_t> allocations;
  // Besides that, addresses from here on pass for device memory.
  static constexpr CUdeviceptr device_memory = CUdeviceptr{1} << 60;

  // Record.
  std::map<std::string, int> asked_versions;  // of cuGetProcAddress
  std::vector<int> retained_devices;
  std::vector<CUcontext> context_stack;
  std::vector<std::string> loaded_cubins;
  std::vector<CUlibrary> unloaded;
  std::vector<std::string> kernel_names;
  int functions_got = 0;
  std::vector<SetAttribute> set_attributes;
  std::vector<Launch> launches;
  std::size_t num_launches = 0;
  std::vector<EncodedTensorMap> tensor_maps;
};

// Where the build put the mock.
extern const char* const mock_driver_path;

// The state inside the mapped mock, as new.
MockDriver& fresh_mock_driver();

}  // namespace attnjit::test

extern "C" attnjit::test::MockDriver* attnjit_mock_driver();
