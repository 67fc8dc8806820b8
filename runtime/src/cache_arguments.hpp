// Views of paged caches: their checks and what kernels take of them. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/tensor_view.hpp"
#include "interface/paged_decode_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {

// A cache of `descriptor` with `head_dim` columns: one pool or, of rank 5, one per request of
// `batch`; with `pages` of them, which may be TensorChecks::any. False if it is not.
bool check_cache(TensorChecks& checks, std::string_view name, const TensorView& cache,
                 const AttentionDescriptor& descriptor, std::int64_t batch, std::int64_t pages,
                 int head_dim);

// Of a cache that was checked: the pages of a pool.
std::int64_t pages_of(const TensorView& cache);

// Where the heads of a cache of this tag stand.
std::size_t head_dimension(const TensorView& cache, KvLayoutTag tag);

// Of a cache that was checked.
kernel_interface::CacheStrides cache_strides(const TensorView& cache, KvLayoutTag tag);

}  // namespace attnjit
