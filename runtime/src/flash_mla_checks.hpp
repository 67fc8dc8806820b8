// Every check that FlashMLA's tensor-shape reference documents, each with its error code. Pure;
// thread-safe. All throw FlashMlaError.
#pragma once

#include "attnjit/flash_mla.hpp"

namespace attnjit {

[[noreturn]] void fail_flash_mla(FlashMlaErrorCode code, std::string_view cause,
                                 std::string_view fix);

// A negative extent stands for any positive one.
void require_shape(std::string_view name, const TensorView& view,
                   std::span<const std::int64_t> wanted);

void require_dtype(std::string_view name, const TensorView& view, DataType dtype);

// Strides in the listed order must not increase, and a dimension must not overlap the next inner
// one.
void require_monotonic(std::string_view name, const TensorView& view);

// A cache [B, H, Nblk, 64, D] of this shape, contiguous within the last two dimensions.
void check_block_cache(std::string_view name, const TensorView& cache, DataType dtype,
                       std::span<const std::int64_t> wanted);

// Ranks, extents that must agree, the head ratio, the block size.
void check_mla_shapes(std::span<const std::int64_t> q_shape,
                      std::span<const std::int64_t> kv_shape);

void check_block_table(const TensorView& block_table, std::span<const std::int64_t> kv_shape);

void check_seq_lens(std::span<const int> seq_lens, std::span<const std::int64_t> kv_shape,
                    BlockCountPolicy policy);

// Types, contiguity, stride order, the mask's length; and that the tensors are those of `metadata`.
void check_flash_mla_call(const FlashMlaCall& call, const MlaMetadata& metadata);

}  // namespace attnjit
