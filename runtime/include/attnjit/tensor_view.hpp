// A tensor on the device as attnjit sees it: pointer, type, shape and strides; never owned. A plain
// value, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

struct TensorView {
  static constexpr int max_rank = 5;

  void* data = nullptr;  // device pointer; null = not given
  DataType dtype = DataType::bf16;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape = {};
  std::array<std::int64_t, max_rank> strides = {};  // in elements
};

// A row-major view of contiguous memory. At most max_rank dimensions.
TensorView contiguous_view(void* data, DataType dtype, std::initializer_list<std::int64_t> shape);

// The dimensions of `view` in another order: dimension i of the result is dimension order[i].
TensorView permuted_view(const TensorView& view, std::initializer_list<int> order);

// The extents of `view`; of a rank that no tensor has, those that are there.
std::span<const std::int64_t> shape_of(const TensorView& view);

// "bf16 [2, 1, 16, 576], strides [9216, 9216, 576, 1]", for error messages.
std::string describe(const TensorView& view);

}  // namespace attnjit
