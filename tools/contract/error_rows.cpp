// R44 to R55: the documented errors, each with its code and fix, and the quick checks before a
// call. None of it needs a GPU.
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Code = FlashMlaErrorCode;

ContractCase bad_metadata(const std::string& name, Code code,
                          const std::function<void(LegalDecode&)>& spoil) {
  return refused_as(name, code, metadata_with(spoil));
}

ContractCase bad_decode(const std::string& name, Code code,
                        const std::function<void(FlashMlaCall&)>& spoil) {
  return refused_as(name, code, decode_with(spoil));
}

ContractCase bad_prefill(const std::string& name, Code code,
                         const std::function<void(FlashMlaPrefillCall&)>& spoil) {
  return refused_as(name, code, prefill_with(spoil));
}

ContractCase bad_mha(const std::string& name, Code code,
                     const std::function<void(MhaKvCacheCall&)>& spoil) {
  return refused_as(name, code, mha_with(spoil));
}

// Nblk 3 for one block's tokens.
void leave_spare_blocks(LegalDecode& decode) {
  decode.seq_lens = {60, 64};
}

std::vector<Requirement> shape_error_rows() {
  return {
      {"R44",
       "head_ratio: Hq is no integer multiple of Hk; adjust the q reshape or head splitting",
       {bad_metadata("decode, 7 over 4", Code::head_ratio,
                     [](LegalDecode& d) { d.q_shape[1] = 7; }),
        refused_as("prefill, 6 over 4", Code::head_ratio,
                   [] {
                     flash_mla_prefill_descriptor(
                         {.num_q_heads = 6, .num_kv_heads = 4, .head_dim = 64});
                   })},
       ""},
      {"R45",
       "block_count: Nblk is not ceil(seq_len / 64); update block_table or the cache",
       {bad_metadata("a table of other blocks than the cache", Code::block_count,
                     [](LegalDecode& d) {
                       d.block_table = fake_view(DataType::int32, {2, 4});
                     }),
        bad_metadata("spare blocks under the exact policy", Code::block_count,
                     [](LegalDecode& d) {
                       leave_spare_blocks(d);
                       d.options.block_count = BlockCountPolicy::exact;
                     }),
        bad_mha("too few blocks for the prompt", Code::block_count,
                [](MhaKvCacheCall& c) {
                  c.block_table = fake_view(DataType::int32, {2, 1});
                  c.k_cache = c.v_cache = fake_view(DataType::bf16, {2, 4, 1, 64, 64});
                })},
       ""},
      {"R46",
       "inner_contiguity: q or a cache is not contiguous in D and Blk; make it so or re-pack",
       {bad_decode("q", Code::inner_contiguity, [](FlashMlaCall& c) { c.q.strides[1] = 256; }),
        bad_decode("rows of k_cache", Code::inner_contiguity,
                   [](FlashMlaCall& c) { c.k_cache.strides[3] = 256; }),
        bad_decode("columns of v_cache", Code::inner_contiguity,
                   [](FlashMlaCall& c) { c.v_cache.strides[4] = 2; }),
        bad_prefill("columns of k", Code::inner_contiguity,
                    [](FlashMlaPrefillCall& c) { c.k.strides[3] = 2; }),
        bad_mha("rows of k_cache in prefill", Code::inner_contiguity,
                [](MhaKvCacheCall& c) { c.k_cache.strides[3] = 128; })},
       ""},
      {"R47",
       "mask_length: the mask covers fewer keys than P + T; pad it or compute it again",
       {bad_decode("129 of 130 keys", Code::mask_length,
                   [](FlashMlaCall& c) {
                     c.mask = fake_view(DataType::uint8, {2, 1, 1, 129});
                   }),
        bad_prefill("99 of 100 keys", Code::mask_length,
                    [](FlashMlaPrefillCall& c) {
                      c.attn_mask = fake_view(DataType::uint8, {2, 1, 100, 99});
                    }),
        bad_mha("64 of 100 keys", Code::mask_length,
                [](MhaKvCacheCall& c) {
                  c.attn_mask = fake_view(DataType::uint8, {2, 1, 100, 64});
                })},
       ""},
  };
}

std::vector<Requirement> content_error_rows() {
  return {
      {"R48",
       "cache_overflow: a length exceeds Nblk * 64; grow the cache or truncate the sequence",
       {bad_metadata("193 tokens of 3 blocks", Code::cache_overflow,
                     [](LegalDecode& d) {
                       d.seq_lens = {64, 193};
                     })},
       ""},
      {"R49",
       "dtype_mismatch: q, k, v and caches differ in type; cast them to one",
       {bad_decode("q", Code::dtype_mismatch, [](FlashMlaCall& c) { c.q.dtype = DataType::fp16; }),
        bad_decode("k_cache", Code::dtype_mismatch,
                   [](FlashMlaCall& c) { c.k_cache.dtype = DataType::fp8_e4m3; }),
        bad_decode("v_cache", Code::dtype_mismatch,
                   [](FlashMlaCall& c) { c.v_cache.dtype = DataType::fp16; }),
        bad_prefill("k in prefill", Code::dtype_mismatch,
                    [](FlashMlaPrefillCall& c) { c.k.dtype = DataType::fp16; }),
        bad_mha("k_cache in prefill", Code::dtype_mismatch,
                [](MhaKvCacheCall& c) { c.k_cache.dtype = DataType::fp16; })},
       ""},
      {"stride_order",
       "Strides that are not monotonic are an error that names the layout tag to use instead",
       {bad_decode("blocks outside heads", Code::stride_order,
                   [](FlashMlaCall& c) {
                     c.k_cache.strides = {98304, 8192, 32768, 128, 1};
                   }),
        bad_decode("overlapping requests", Code::stride_order,
                   [](FlashMlaCall& c) { c.k_cache.strides[0] = c.k_cache.strides[1]; }),
        bad_prefill(
            "tokens outside heads", Code::stride_order,
            [](FlashMlaPrefillCall& c) {
              c.q = permuted_view(fake_view(DataType::bf16, {2, 100, 8, 128}), {0, 2, 1, 3});
            }),
        bad_mha("blocks outside heads in prefill", Code::stride_order,
                [](MhaKvCacheCall& c) { std::swap(c.k_cache.strides[1], c.k_cache.strides[2]); })},
       ""},
  };
}

std::vector<Requirement> quick_check_rows() {
  return {
      {"R50",
       "Before a call: q.shape == (B, Hq, 1, D)",
       {bad_decode("other heads", Code::shape_mismatch, [](FlashMlaCall& c) { c.q.shape[1] = 4; }),
        accepted("the shape of the metadata", decode_with([](FlashMlaCall&) {}))},
       ""},
      {"R51",
       "Before a call: k_cache.shape == (B, Hk, Nblk, 64, D)",
       {bad_decode("other blocks", Code::shape_mismatch,
                   [](FlashMlaCall& c) { c.k_cache.shape[2] = 4; }),
        bad_decode("rank 4", Code::shape_mismatch, [](FlashMlaCall& c) { c.k_cache.rank = 4; })},
       ""},
      {"R52",
       "Before a call: Hq % Hk == 0",
       {bad_metadata("9 over 4", Code::head_ratio, [](LegalDecode& d) { d.q_shape[1] = 9; })},
       ""},
      {"R53",
       "Before a call: block_table.shape == (B, Nblk)",
       {bad_decode("other requests", Code::block_count,
                   [](FlashMlaCall& c) {
                     c.block_table = fake_view(DataType::int32, {3, 3});
                   }),
        bad_metadata("rank 1", Code::block_count, [](LegalDecode& d) { d.block_table.rank = 1; })},
       ""},
      {"R54",
       "Before a call: every seq_lens[b] <= Nblk * 64",
       {bad_metadata("one of two too long", Code::cache_overflow,
                     [](LegalDecode& d) {
                       d.seq_lens = {193, 1};
                     }),
        accepted("full blocks", metadata_with([](LegalDecode& d) {
                   d.seq_lens = {192, 192};
                 }))},
       ""},
      {"R55",
       "Before a call: q is contiguous",
       {bad_decode("requests apart", Code::inner_contiguity,
                   [](FlashMlaCall& c) { c.q.strides[0] = 2048; })},
       ""},
  };
}

}  // namespace

std::vector<Requirement> error_rows() {
  return joined(joined(shape_error_rows(), content_error_rows()), quick_check_rows());
}

}  // namespace attnjit::contract
