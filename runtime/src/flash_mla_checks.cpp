#include "flash_mla_checks.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit {
namespace {

constexpr std::int64_t block_size = 64;

using Shape = std::span<const std::int64_t>;

bool is_contiguous(const TensorView& view) {
  std::int64_t stride = 1;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    if (view.shape[i] > 1 && view.strides[i] != stride) {
      return false;
    }
    stride *= view.shape[i];
  }
  return true;
}

void require_contiguous(std::string_view name, const TensorView& view) {
  if (!is_contiguous(view)) {
    fail_flash_mla(FlashMlaErrorCode::inner_contiguity,
                   fmt::format("{} is {}, which is not contiguous", name, describe(view)),
                   "make it contiguous, or re-pack it before the call");
  }
}

// stride * extent > limit, without overflow; all are non-negative.
bool spans_more_than(std::int64_t stride, std::int64_t extent, std::int64_t limit) {
  return extent > 0 && stride > limit / extent;
}

void check_mask(const TensorView& mask, const MlaMetadata& metadata) {
  if (mask.data == nullptr) {
    return;
  }
  if (mask.rank != 4) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                   fmt::format("mask is {}, not [B, 1, 1, P+T]", describe(mask)),
                   "reshape the mask");
  }
  if (mask.shape[3] < metadata.max_seqlen_kv) {
    fail_flash_mla(FlashMlaErrorCode::mask_length,
                   fmt::format("mask covers {} keys, the longest sequence has {}", mask.shape[3],
                               metadata.max_seqlen_kv),
                   "pad the mask, or recompute it with the right length");
  }
}

}  // namespace

std::string_view to_string(FlashMlaErrorCode code) {
  switch (code) {
    case FlashMlaErrorCode::head_ratio:
      return "head_ratio";
    case FlashMlaErrorCode::block_count:
      return "block_count";
    case FlashMlaErrorCode::inner_contiguity:
      return "inner_contiguity";
    case FlashMlaErrorCode::mask_length:
      return "mask_length";
    case FlashMlaErrorCode::cache_overflow:
      return "cache_overflow";
    case FlashMlaErrorCode::dtype_mismatch:
      return "dtype_mismatch";
    case FlashMlaErrorCode::stride_order:
      return "stride_order";
    case FlashMlaErrorCode::shape_mismatch:
      return "shape_mismatch";
  }
  return "";
}

FlashMlaError::FlashMlaError(FlashMlaErrorCode code, const std::string& message)
    : std::runtime_error(message), code_(code) {}

void fail_flash_mla(FlashMlaErrorCode code, std::string_view cause, std::string_view fix) {
  throw FlashMlaError(code, fmt::format("{}: {}; fix: {}", to_string(code), cause, fix));
}

void require_shape(std::string_view name, const TensorView& view, Shape wanted) {
  const Shape given = shape_of(view);
  const auto fits = [](std::int64_t extent, std::int64_t want) {
    return extent == want || (want < 0 && extent > 0);
  };
  if (!std::equal(given.begin(), given.end(), wanted.begin(), wanted.end(), fits)) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                   fmt::format("{} has shape [{}], not [{}]", name, fmt::join(given, ", "),
                               fmt::join(wanted, ", ")),
                   "pass the tensor that the metadata or kernel was made for; -1 is any extent");
  }
}

void require_dtype(std::string_view name, const TensorView& view, DataType dtype) {
  if (view.dtype != dtype) {
    fail_flash_mla(
        FlashMlaErrorCode::dtype_mismatch,
        fmt::format("{} is {}, the others are {}", name, to_string(view.dtype), to_string(dtype)),
        "cast q, k_cache and v_cache to one type");
  }
}

void require_monotonic(std::string_view name, const TensorView& view) {
  std::int64_t inner_stride = 0;
  std::int64_t inner_extent = 0;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    if (view.shape[i] <= 1) {
      continue;
    }
    if (view.strides[i] < 1 || spans_more_than(inner_stride, inner_extent, view.strides[i])) {
      fail_flash_mla(
          FlashMlaErrorCode::stride_order,
          fmt::format("{} is {}: the stride of dimension {} is smaller than what lies inside it",
                      name, describe(view), i),
          "permute the tensor to [B, H, blocks, 64, D], or use run_decode with the layout tag that "
          "names its order (nhd or hnd)");
    }
    inner_stride = view.strides[i];
    inner_extent = view.shape[i];
  }
}

void check_block_cache(std::string_view name, const TensorView& cache, DataType dtype,
                       Shape wanted) {
  require_shape(name, cache, wanted);
  require_dtype(name, cache, dtype);
  const std::int64_t head_dim = wanted[4];
  if (cache.strides[4] != 1 || cache.strides[3] != head_dim) {
    fail_flash_mla(FlashMlaErrorCode::inner_contiguity,
                   fmt::format("{} is {}: a block's 64 rows of {} elements do not lie together",
                               name, describe(cache), head_dim),
                   "make the cache contiguous in (block, D), or re-pack it before the call");
  }
  require_monotonic(name, cache);
}

void check_mla_shapes(Shape q_shape, Shape kv_shape) {
  const auto positive = [](std::int64_t extent) { return extent > 0 && extent <= INT32_MAX; };
  if (q_shape.size() != 4 || !std::all_of(q_shape.begin(), q_shape.end(), positive)) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                   fmt::format("q has shape [{}], not [B, Hq, S, D]", fmt::join(q_shape, ", ")),
                   "reshape q; all extents are positive");
  }
  if (kv_shape.size() != 5 || !std::all_of(kv_shape.begin(), kv_shape.end(), positive) ||
      kv_shape[3] != block_size) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                   fmt::format("the cache has shape [{}], not [B, Hk, Nblk, 64, D]",
                               fmt::join(kv_shape, ", ")),
                   "reshape the cache; a block holds 64 tokens");
  }
  if (kv_shape[0] != q_shape[0] || kv_shape[4] != q_shape[3]) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                   fmt::format("q [{}] and cache [{}] differ in B or D", fmt::join(q_shape, ", "),
                               fmt::join(kv_shape, ", ")),
                   "pass q and cache of the same requests and head dim");
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : kv_shape) {
    if (spans_more_than(extent, elements, INT64_MAX / 16)) {
      fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                     fmt::format("the cache [{}] has more elements than memory has bytes",
                                 fmt::join(kv_shape, ", ")),
                     "pass the extents of the tensor that is there");
    }
    elements *= extent;
  }
  if (q_shape[1] % kv_shape[1] != 0) {
    fail_flash_mla(
        FlashMlaErrorCode::head_ratio,
        fmt::format("Hq = {} is not an integer multiple of Hk = {}", q_shape[1], kv_shape[1]),
        "adjust the q reshape or the head splitting");
  }
}

void check_block_table(const TensorView& block_table, Shape kv_shape) {
  if (block_table.rank != 2 || block_table.shape[0] != kv_shape[0] ||
      block_table.shape[1] != kv_shape[2]) {
    fail_flash_mla(FlashMlaErrorCode::block_count,
                   fmt::format("block_table is {}, the cache has {} requests of {} blocks",
                               describe(block_table), kv_shape[0], kv_shape[2]),
                   "update block_table or the cache allocation: block_table is [B, Nblk]");
  }
  if (block_table.dtype != DataType::int32) {
    fail_flash_mla(FlashMlaErrorCode::dtype_mismatch,
                   fmt::format("block_table is {}, not int32", to_string(block_table.dtype)),
                   "convert it to int32");
  }
  require_contiguous("block_table", block_table);
}

void check_seq_lens(std::span<const int> seq_lens, Shape kv_shape, BlockCountPolicy policy) {
  if (static_cast<std::int64_t>(seq_lens.size()) != kv_shape[0]) {
    fail_flash_mla(
        FlashMlaErrorCode::shape_mismatch,
        fmt::format("seq_lens has {} entries for {} requests", seq_lens.size(), kv_shape[0]),
        "give one length per request");
  }
  int longest = 0;
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    if (seq_lens[b] < 0) {
      fail_flash_mla(FlashMlaErrorCode::shape_mismatch,
                     fmt::format("seq_lens[{}] = {}", b, seq_lens[b]),
                     "give lengths of at least 0");
    }
    if (seq_lens[b] > kv_shape[2] * block_size) {
      fail_flash_mla(FlashMlaErrorCode::cache_overflow,
                     fmt::format("seq_lens[{}] = {} exceeds Nblk * 64 = {} * 64 = {}", b,
                                 seq_lens[b], kv_shape[2], kv_shape[2] * block_size),
                     "grow the cache or truncate the sequence");
    }
    longest = std::max(longest, seq_lens[b]);
  }
  const std::int64_t needed = (longest + block_size - 1) / block_size;
  if (policy != BlockCountPolicy::at_least && needed != kv_shape[2]) {
    fail_flash_mla(FlashMlaErrorCode::block_count,
                   fmt::format("Nblk = {}, the longest sequence of {} tokens needs {}", kv_shape[2],
                               longest, needed),
                   "update block_table or the cache allocation, or allow spare blocks");
  }
}

void check_flash_mla_call(const FlashMlaCall& call, const MlaMetadata& metadata) {
  const AttentionDescriptor& descriptor = metadata.descriptor;
  const std::array<std::int64_t, 4> q_shape = {metadata.batch, descriptor.num_q_heads,
                                               metadata.seqlen_q, descriptor.head_dim_qk};
  require_shape("q", call.q, q_shape);
  require_dtype("q", call.q, descriptor.dtype_q);
  require_contiguous("q", call.q);
  std::array<std::int64_t, 5> kv_shape = {metadata.batch, descriptor.num_kv_heads,
                                          metadata.num_blocks, block_size, descriptor.head_dim_qk};
  check_block_cache("k_cache", call.k_cache, descriptor.dtype_kv, kv_shape);
  if (descriptor.value_source == ValueSource::separate) {
    kv_shape[4] = descriptor.head_dim_v;
    check_block_cache("v_cache", call.v_cache, descriptor.dtype_kv, kv_shape);
  }
  check_block_table(call.block_table, kv_shape);
  check_mask(call.mask, metadata);
}

}  // namespace attnjit
