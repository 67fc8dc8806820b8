#include "attention_tensors.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attnjit {
namespace {

// Where page, token and head stand in a cache view of the given tag; rank 5 has a batch dimension
// before them.
struct CacheDimensions {
  std::size_t page;
  std::size_t token;
  std::size_t head;
};

CacheDimensions cache_dimensions(const TensorView& cache, KvLayoutTag tag) {
  const std::size_t page = cache.rank == 5 ? 1 : 0;
  return tag == KvLayoutTag::hnd ? CacheDimensions{page, page + 2, page + 1}
                                 : CacheDimensions{page, page + 1, page + 2};
}

}  // namespace

void require_some(TensorChecks& checks, std::string_view name, const TensorView& view,
                  std::size_t dimension) {
  if (view.shape.at(dimension) < 1) {
    checks.add(name, describe(view), fmt::format("must not be empty in dimension {}", dimension),
               "pass the tensor that holds the keys, or leave out requests without any");
  }
}

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

void check_cache(TensorChecks& checks, std::string_view name, const TensorView& cache,
                 const AttentionDescriptor& descriptor, std::int64_t batch, int head_dim) {
  const bool hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
  const std::int64_t second = hnd ? descriptor.num_kv_heads : descriptor.page_size;
  const std::int64_t third = hnd ? descriptor.page_size : descriptor.num_kv_heads;
  const bool fits = cache.rank == 5
                        ? check_rows(checks, name, cache, descriptor.dtype_kv,
                                     {batch, TensorChecks::any, second, third, head_dim})
                        : check_rows(checks, name, cache, descriptor.dtype_kv,
                                     {TensorChecks::any, second, third, head_dim});
  if (fits) {
    require_some(checks, name, cache, cache.rank == 5 ? 1 : 0);
  }
}

void check_block_table(TensorChecks& checks, const TensorView& block_table, std::int64_t batch) {
  if (check_numbers(checks, "block_table", block_table, DataType::int32,
                    {batch, TensorChecks::any})) {
    require_some(checks, "block_table", block_table, 1);
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

void check_scale(TensorChecks& checks, float softmax_scale) {
  if (!std::isfinite(softmax_scale)) {
    checks.add("softmax_scale", fmt::format("{}", softmax_scale), "must be finite",
               "give 1 / sqrt(head_dim_qk), or what the model's config asks for");
  }
}

kernel_interface::CacheStrides cache_strides(const TensorView& cache, KvLayoutTag tag) {
  const CacheDimensions at = cache_dimensions(cache, tag);
  return {cache.rank == 5 ? cache.strides[0] : 0, cache.strides[at.page], cache.strides[at.head],
          cache.strides[at.token]};
}

std::int64_t broadcast_stride(const TensorView& view, std::size_t dimension) {
  return view.shape.at(dimension) == 1 ? 0 : view.strides.at(dimension);
}

kernel_interface::MaskStrides mask_strides(const TensorView& mask) {
  return {broadcast_stride(mask, 0), broadcast_stride(mask, 1), broadcast_stride(mask, 2),
          broadcast_stride(mask, 3)};
}

int bounded_extent(std::int64_t extent) {
  return static_cast<int>(std::min<std::int64_t>(extent, INT32_MAX));
}

}  // namespace attnjit
