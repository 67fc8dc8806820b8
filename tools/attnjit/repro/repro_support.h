// What every main of a reproduction does: memory on the device, filled by a seed, a checked launch,
// and a sum of the result that two machines can compare.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "device/config_types.cuh"
#include "repro_case.h"

namespace repro {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
  }
}

constexpr std::size_t bytes_of(DataType type) {
  return type == DataType::fp32 ? 4 : type == DataType::bf16 || type == DataType::fp16 ? 2 : 1;
}

// One element of `type` close to `value`; fp8 gets bits of its own that are a small number.
inline void store_element(DataType type, float value, std::uint32_t random, unsigned char* out) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (type == DataType::fp32) {
    std::memcpy(out, &bits, 4);
  } else if (type == DataType::bf16) {
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(out, &high, 2);
  } else if (type == DataType::fp16) {
    const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
    const auto half = static_cast<std::uint16_t>(
        exponent <= 0 ? 0 : (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
    std::memcpy(out, &half, 2);
  } else if (type == DataType::uint8) {
    *out = random >> 8 & 1;
  } else {
    *out = static_cast<unsigned char>(random & 0x9f);  // magnitudes below 1
  }
}

template <typename Value>
Value* upload(const std::vector<Value>& values) {
  void* memory = nullptr;
  const std::size_t bytes = values.size() * sizeof(Value);
  check(cudaMalloc(&memory, bytes + 16), "cudaMalloc");
  check(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return static_cast<Value*>(memory);
}

// `count` elements of `type`, N(0, scale^2); each call its own numbers, by the case's seed.
inline void* random_tensor(DataType type, long long count, float scale) {
  static unsigned long long calls = 0;
  std::mt19937_64 random(repro_case::seed + calls++);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count) * bytes_of(type));
  for (long long i = 0; i < count; ++i) {
    const auto integer = static_cast<std::uint32_t>(random());
    store_element(type, normal(random), integer, &bytes[i * bytes_of(type)]);
  }
  return upload(bytes);
}

inline float* random_floats(long long count, float scale) {
  return static_cast<float*>(random_tensor(DataType::fp32, count, scale));
}

inline float* ones(long long count) {
  return upload(std::vector<float>(static_cast<std::size_t>(count), 1.0f));
}

inline void* zeros(long long bytes) {
  return upload(std::vector<unsigned char>(static_cast<std::size_t>(bytes)));
}

inline int num_sms() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
        "cudaDeviceGetAttribute");
  return count;
}

template <typename Arguments>
void launch(void (*kernel)(Arguments), dim3 grid, const Arguments& arguments,
            unsigned cluster = 1) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             repro_case::shared_memory_bytes),
        "cudaFuncSetAttribute");
  cudaLaunchConfig_t launch = {};
  launch.gridDim = grid;
  launch.blockDim = dim3(repro_case::num_threads);
  launch.dynamicSmemBytes = repro_case::shared_memory_bytes;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  launch.attrs = &attribute;
  launch.numAttrs = cluster > 1 ? 1 : 0;
  std::printf("grid %u x %u x %u, cluster %u, block %d, dynamic shared memory %d bytes\n", grid.x,
              grid.y, grid.z, cluster, repro_case::num_threads, repro_case::shared_memory_bytes);
  check(cudaLaunchKernelEx(&launch, kernel, arguments), "cudaLaunchKernelEx");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// FNV-1a over the bytes of a result: equal results have equal sums.
inline void print_checksum(const char* name, const void* device, long long count) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  check(cudaMemcpy(bytes.data(), device, bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  std::uint64_t sum = 14695981039346656037ull;
  for (const unsigned char byte : bytes) {
    sum = (sum ^ byte) * 1099511628211ull;
  }
  std::printf("%s: %lld bytes, checksum %016llx\n", name, count,
              static_cast<unsigned long long>(sum));
}

}  // namespace repro
