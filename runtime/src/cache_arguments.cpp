#include "cache_arguments.hpp"

#include "attention_tensors.hpp"

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

bool check_cache(TensorChecks& checks, std::string_view name, const TensorView& cache,
                 const AttentionDescriptor& descriptor, std::int64_t batch, std::int64_t pages,
                 int head_dim) {
  const bool hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
  const std::int64_t second = hnd ? descriptor.num_kv_heads : descriptor.page_size;
  const std::int64_t third = hnd ? descriptor.page_size : descriptor.num_kv_heads;
  const bool fits = cache.rank == 5 ? check_rows(checks, name, cache, descriptor.dtype_kv,
                                                 {batch, pages, second, third, head_dim})
                                    : check_rows(checks, name, cache, descriptor.dtype_kv,
                                                 {pages, second, third, head_dim});
  if (fits) {
    checks.require_some(name, cache, cache.rank == 5 ? 1 : 0);
  }
  return fits;
}

std::int64_t pages_of(const TensorView& cache) {
  return cache.shape.at(cache.rank == 5 ? 1 : 0);
}

std::size_t head_dimension(const TensorView& cache, KvLayoutTag tag) {
  return cache_dimensions(cache, tag).head;
}

kernel_interface::CacheStrides cache_strides(const TensorView& cache, KvLayoutTag tag) {
  const CacheDimensions at = cache_dimensions(cache, tag);
  return {cache.rank == 5 ? cache.strides[0] : 0, cache.strides.at(at.page),
          cache.strides.at(at.head), cache.strides.at(at.token)};
}

}  // namespace attnjit
