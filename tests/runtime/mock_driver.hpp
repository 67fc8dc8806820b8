// The state of the mock libcuda.so.1 (mock_driver.cpp): how it shall behave, and what it was asked.
// The tests open the mock as a driver and reach this through mock_driver(). Not thread-safe to read
// while calls are under way.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
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
  std::array<std::byte, 64> arguments;  // the first bytes of the first parameter
  CUcontext context;                    // current at the call
};

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
  std::string missing_name;  // an entry point it does not have
  int device_count = 2;
  std::map<CUdevice_attribute, int> attributes = {  // of an H200
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560}};
  bool is_capturing = false;  // every stream
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
  std::vector<EncodedTensorMap> tensor_maps;
};

// Where the build put the mock.
extern const char* const mock_driver_path;

// The state inside the mapped mock, as new.
MockDriver& fresh_mock_driver();

}  // namespace attnjit::test

extern "C" attnjit::test::MockDriver* attnjit_mock_driver();
