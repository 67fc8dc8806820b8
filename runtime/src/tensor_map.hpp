// A tensor in global memory, and the box of it that one copy brings -> TensorMap, which a kernel
// that copies by TMA takes as an argument. Pure up to the encoding, which needs a current context
// (measured: INVALID_CONTEXT without); thread-safe. Costs nothing but the driver's call while all
// is well.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_descriptor.hpp"
#include "interface/tensor_map.h"

namespace attnjit {

class Driver;

using kernel_interface::Swizzle;
using kernel_interface::TensorMap;

constexpr int max_tensor_map_rank = 5;

// Dimensions are counted from the innermost, which is contiguous. A box may reach past the tensor:
// what lies outside is copied as zeros.
struct TensorMapShape {
  DataType dtype = DataType::bf16;  // fp8 types are copied as bytes
  int rank = 2;
  std::array<std::int64_t, max_tensor_map_rank> extents{};            // elements
  std::array<std::int64_t, max_tensor_map_rank - 1> strides_bytes{};  // of dimensions 1 and up
  std::array<int, max_tensor_map_rank> box{};                         // elements
  Swizzle swizzle = Swizzle::none;
};

// The rules of the driver and of the hardware that the map of `name` would break, all of them.
std::vector<Violation> find_violations(std::string_view name, const TensorMapShape& shape,
                                       const void* base);

// Encodes the map of the tensor at `base`, device memory of the current context. Throws
// ArgumentError listing every broken rule, CudaError if the driver refuses nonetheless.
TensorMap encode_tensor_map(const Driver& driver, std::string_view name,
                            const TensorMapShape& shape, const void* base);

}  // namespace attnjit
