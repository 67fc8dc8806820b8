#include "attention_tensors.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attnjit {
bool check_rows(TensorChecks& checks, std::string_view name, const TensorView& view, DataType dtype,
                std::initializer_list<std::int64_t> shape) {
  if (!checks.require_shape(name, view, dtype, shape)) {
    return false;
  }
  checks.require_strides(name, view, elements_per_16_bytes, 16);
  return true;
}

void check_output(TensorChecks& checks, std::string_view name, const TensorView& view,
                  DataType dtype, std::initializer_list<std::int64_t> shape) {
  if (check_rows(checks, name, view, dtype, shape)) {
    checks.require_distinct(name, view);
  }
}

bool check_numbers(TensorChecks& checks, std::string_view name, const TensorView& view,
                   DataType dtype, std::initializer_list<std::int64_t> shape) {
  if (!checks.require_shape(name, view, dtype, shape)) {
    return false;
  }
  checks.require_strides(name, view, 1, 4);
  return true;
}

void check_block_table(TensorChecks& checks, const TensorView& block_table, std::int64_t batch) {
  if (check_numbers(checks, "block_table", block_table, DataType::int32,
                    {batch, TensorChecks::any})) {
    checks.require_some("block_table", block_table, 1);
  }
}

void check_sinks(TensorChecks& checks, const AttentionDescriptor& descriptor,
                 const TensorView& sinks) {
  if (descriptor.has_sinks) {
    check_numbers(checks, "sinks", sinks, DataType::fp32, {descriptor.num_q_heads});
  } else if (sinks.data != nullptr) {
    checks.add("sinks", describe(sinks), "must not be given: the descriptor has no sinks",
               "leave it out, or prepare a descriptor with has_sinks");
  }
}

void require_absent(TensorChecks& checks, std::string_view name, const TensorView& view,
                    std::string_view because, std::string_view fix) {
  if (view.data != nullptr) {
    checks.add(name, describe(view), fmt::format("must not be given: {}", because),
               std::string(fix));
  }
}

void check_softmax_scale(TensorChecks& checks, float softmax_scale) {
  if (!std::isfinite(softmax_scale)) {
    checks.add("softmax_scale", fmt::format("{}", softmax_scale), "must be finite",
               "give 1 / sqrt(head_dim_qk), or what the model's config asks for");
  }
}

std::int64_t broadcast_stride(const TensorView& view, std::size_t dimension) {
  return view.shape.at(dimension) == 1 ? 0 : view.strides.at(dimension);
}

kernel_interface::MaskStrides mask_strides(const TensorView& mask) {
  return {broadcast_stride(mask, 0), broadcast_stride(mask, 1), broadcast_stride(mask, 2),
          broadcast_stride(mask, 3)};
}

kernel_interface::QueryStrides query_strides(const TensorView& view) {
  return view.rank == 3
             ? kernel_interface::QueryStrides{0, view.strides[0], view.strides[1]}
             : kernel_interface::QueryStrides{view.strides[0], view.strides[1], view.strides[2]};
}

int bounded_extent(std::int64_t extent) {
  return static_cast<int>(std::min<std::int64_t>(extent, INT32_MAX));
}

}  // namespace attnjit
