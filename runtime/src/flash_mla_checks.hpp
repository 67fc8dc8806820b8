// Every check that FlashMLA's tensor-shape reference documents, each with its error code. Pure;
// thread-safe. All throw FlashMlaError.
#pragma once

#include "attnjit/flash_mla.hpp"

namespace attnjit {

// Ranks, extents that must agree, the head ratio, the block size.
void check_mla_shapes(std::span<const std::int64_t> q_shape,
                      std::span<const std::int64_t> kv_shape);

void check_block_table(const TensorView& block_table, std::span<const std::int64_t> kv_shape);

void check_seq_lens(std::span<const int> seq_lens, std::span<const std::int64_t> kv_shape,
                    BlockCountPolicy policy);

// Types, contiguity, stride order, the mask's length; and that the tensors are those of `metadata`.
void check_flash_mla_call(const FlashMlaCall& call, const MlaMetadata& metadata);

}  // namespace attnjit
