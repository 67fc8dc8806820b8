// Legal calls of every façade over memory that is not there: cases spoil one thing each and see it
// refused. Nothing may launch them or read through their pointers. Pure; thread-safe.
#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "attnjit/flare_mla_prefill.hpp"
#include "attnjit/flash_mla.hpp"
#include "attnjit/flash_mla_prefill.hpp"
#include "attnjit/merge_states.hpp"

namespace attnjit::contract {

// Aligned.
TensorView fake_view(DataType dtype, std::initializer_list<std::int64_t> shape);

// Arguments of get_mla_metadata, and the call that goes with them: B 2, Hq 8, Hk 4, D 128, Nblk 3.
struct LegalDecode {
  std::vector<std::int64_t> q_shape = {2, 8, 1, 128};
  std::vector<std::int64_t> kv_shape = {2, 4, 3, 64, 128};
  TensorView block_table = fake_view(DataType::int32, {2, 3});
  std::vector<int> seq_lens = {130, 64};
  MlaMetadataOptions options;
};

MlaMetadata metadata_of(const LegalDecode& decode);

// get_mla_metadata with what `spoil` makes of the legal arguments.
std::function<void()> metadata_with(const std::function<void(LegalDecode&)>& spoil);

// The checks of flash_mla_with_kvcache on what `spoil` makes of the legal call.
std::function<void()> decode_with(const std::function<void(FlashMlaCall&)>& spoil);

// flash_mla_prefill, B 2, Hq 8, Hk 4, P 100, D 128: every spoilt call is refused before a launch.
std::function<void()> prefill_with(const std::function<void(FlashMlaPrefillCall&)>& spoil,
                                   const FlashMlaPrefillShape& shape = {
                                       .num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128});

// mha_fwd_kvcache, B 2, H 4, P 100, D 64, Nblk 3, with k_new and v_new.
std::function<void()> mha_with(const std::function<void(MhaKvCacheCall&)>& spoil);

// flare_mla_prefill of 2 requests, 50 query tokens and 128 keys in all, 16 heads; k_rope in pages
// of 64, or dense.
std::function<void()> flare_with(const std::function<void(FlareMlaPrefillCall&)>& spoil,
                                 int page_size = 64);

// A legal run_prefill call of a kernel of this descriptor, spoilt.
std::function<void()> run_prefill_with(const AttentionDescriptor& descriptor,
                                       const std::function<void(PrefillCall&)>& spoil);

}  // namespace attnjit::contract
