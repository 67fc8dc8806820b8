// R22 to R36: what FlashMLA's tensor-shape reference says of flash_mla_prefill and mha_fwd_kvcache.
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "prefill_facade_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Code = FlashMlaErrorCode;
using Heads = check::MaskExtents::Heads;

constexpr FlashMlaPrefillShape shape_8_4 = {.num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128};

FlashMlaPrefillShape with_blocks(int block) {
  FlashMlaPrefillShape shape = shape_8_4;
  shape.sparsity_block = block;
  return shape;
}

// A mask of [B, 1, P, P], or of all query heads.
check::PrefillCase masked(check::PrefillCase prefill_case, Heads heads) {
  prefill_case.mask_extents.heads = heads;
  return prefill_case;
}

check::PrefillCase masked_prefill(MaskKind mask, Heads heads) {
  FlashMlaPrefillShape shape = shape_8_4;
  shape.mask = mask;
  shape.dtype_mask = mask == MaskKind::materialized_bool ? DataType::uint8 : DataType::bf16;
  return masked(flash_mla_prefill_problem(shape, 2, 100), heads);
}

check::PrefillCase padded_prefill() {
  check::PrefillCase prefill_case = flash_mla_prefill_problem(shape_8_4, 3, 130);
  prefill_case.row_padding = 8;
  return prefill_case;
}

std::vector<Requirement> prefill_tensor_rows() {
  const check::PrefillCase plain = flash_mla_prefill_problem(shape_8_4, 3, 130);
  return {
      {"R22",
       "flash_mla_prefill takes q [B, Hq, P, D]",
       {flash_mla_prefill_case("130 tokens of 3 requests", plain),
        refused_as("rank 3", Code::shape_mismatch,
                   prefill_with([](FlashMlaPrefillCall& c) { c.q.rank = 3; }))},
       ""},
      {"R23",
       "flash_mla_prefill takes k and v [B, Hk, P, D]",
       {flash_mla_prefill_case("8 over 4 heads", flash_mla_prefill_problem(shape_8_4, 2, 64)),
        refused_as("k of another batch", Code::shape_mismatch,
                   prefill_with([](FlashMlaPrefillCall& c) { c.k.shape[0] = 3; })),
        refused_as("v of other keys", Code::shape_mismatch,
                   prefill_with([](FlashMlaPrefillCall& c) { c.v.shape[2] = 99; }))},
       ""},
      {"R24",
       "sparse_layout is optional",
       {flash_mla_prefill_case("without", flash_mla_prefill_problem(shape_8_4, 2, 200)),
        flash_mla_prefill_case("with", flash_mla_prefill_problem(with_blocks(64), 2, 200)),
        refused_field("asked for and not given", "block_mask",
                      prefill_with([](FlashMlaPrefillCall&) {}, with_blocks(64)))},
       ""},
      {"R25",
       "attn_mask is [B, 1, P, P] or [B, Hq, P, P]; causal, or the caller's",
       {flash_mla_prefill_case("causal", flash_mla_prefill_problem(shape_8_4, 2, 100)),
        flash_mla_prefill_case("bool, for all heads",
                               masked_prefill(MaskKind::materialized_bool, Heads::one)),
        flash_mla_prefill_case("bool, by head",
                               masked_prefill(MaskKind::materialized_bool, Heads::q)),
        flash_mla_prefill_case("additive, by head",
                               masked_prefill(MaskKind::materialized_additive, Heads::q))},
       ""},
      {"R26",
       "flash_mla_prefill gives [B, Hq, P, D]",
       {flash_mla_prefill_case("every output and no other is written", padded_prefill())},
       ""},
      {"R27",
       "The last dimension of q, k and v is contiguous; others may be strided, in order",
       {flash_mla_prefill_case("gaps between rows", padded_prefill()),
        refused_as("a gap between columns", Code::inner_contiguity,
                   prefill_with([](FlashMlaPrefillCall& c) { c.v.strides[3] = 2; })),
        refused_as("tokens outside heads", Code::stride_order,
                   prefill_with([](FlashMlaPrefillCall& c) {
                     c.q = permuted_view(fake_view(DataType::bf16, {2, 100, 8, 128}), {0, 2, 1, 3});
                   }))},
       ""},
      {"R28",
       "A sparse pattern is of blocks of 64 tokens, as the paged cache's",
       {flash_mla_prefill_case("partial blocks at the end",
                               flash_mla_prefill_problem(with_blocks(64), 2, 300)),
        flash_mla_prefill_case("compressed rows",
                               flash_mla_prefill_problem(with_blocks(64), 2, 300),
                               BlockLayoutForm::compressed_rows)},
       ""},
  };
}

check::PrefillCase mha_3(int queries, const std::vector<int>& kv_lens) {
  return mha_problem({.num_heads = 3, .head_dim = 64}, queries, kv_lens);
}

check::PrefillCase masked_mha(Heads heads) {
  return masked(mha_problem({.num_heads = 3, .head_dim = 64, .mask = MaskKind::materialized_bool},
                            100, {100, 100}),
                heads);
}

std::vector<Requirement> mha_tensor_rows() {
  return {
      {"R29",
       "mha_fwd_kvcache takes q [B, H, P, D]",
       {mha_case("100 tokens of 2 requests", mha_3(100, {100, 100})),
        refused_as("other heads", Code::shape_mismatch,
                   mha_with([](MhaKvCacheCall& c) { c.q.shape[1] = 8; }))},
       ""},
      {"R30",
       "mha_fwd_kvcache takes k_cache and v_cache [B, H, Nblk, 64, D]",
       {mha_case("longer than the prompt", mha_3(64, {200, 64, 129})),
        refused_as("v of other blocks", Code::shape_mismatch,
                   mha_with([](MhaKvCacheCall& c) { c.v_cache.shape[2] = 4; }))},
       ""},
      {"R31",
       "mha_fwd_kvcache takes block_table [B, Nblk]",
       {mha_case("blocks in any order", mha_3(65, {700, 65})),
        refused_as("of one request", Code::block_count,
                   mha_with([](MhaKvCacheCall& c) { c.block_table.shape[0] = 1; }))},
       ""},
      {"R32",
       "attn_mask of mha_fwd_kvcache is [B, 1, P, P] or [B, H, P, P]",
       {mha_case("for all heads", masked_mha(Heads::one)),
        mha_case("by head", masked_mha(Heads::q)),
        refused_as("of 64 keys for 100", Code::mask_length, mha_with([](MhaKvCacheCall& c) {
                     c.attn_mask = fake_view(DataType::uint8, {2, 1, 100, 64});
                   }))},
       ""},
      {"R33",
       "mha_fwd_kvcache gives [B, H, P, D]",
       {mha_case("every output and no other is written", mha_3(129, {129, 200, 129}))},
       ""},
  };
}

std::vector<Requirement> mha_rule_rows() {
  return {
      {"R34",
       "mha_fwd_kvcache is plain MHA: as many query heads as kv heads",
       {mha_case("3 over 3 heads", mha_3(63, {63, 127})),
        refused_as("4 over 2", Code::shape_mismatch,
                   mha_with([](MhaKvCacheCall& c) { c.k_cache.shape[1] = 2; }))},
       ""},
      {"R35",
       "A prefill writes its keys and values into the paged cache",
       {mha_write_case("a prompt from its beginning", mha_3(100, {100, 100})),
        mha_write_case("behind what is cached", mha_3(65, {142, 65, 128})),
        refused_as("k_new alone", Code::shape_mismatch,
                   mha_with([](MhaKvCacheCall& c) { c.v_new = {}; })),
        refused_field("nothing is written where attention is refused", "out",
                      mha_with([](MhaKvCacheCall& c) { c.out = {}; }))},
       ""},
      {"R36",
       "block_table covers ceil(P / 64) blocks",
       {mha_case("130 tokens in 3 blocks", mha_3(130, {130, 130})),
        refused_as("100 tokens in one", Code::block_count, mha_with([](MhaKvCacheCall& c) {
                     c.block_table = fake_view(DataType::int32, {2, 1});
                     c.k_cache = c.v_cache = fake_view(DataType::bf16, {2, 4, 1, 64, 64});
                   }))},
       ""},
  };
}

}  // namespace

std::vector<Requirement> prefill_rows() {
  return joined(prefill_tensor_rows(), joined(mha_tensor_rows(), mha_rule_rows()));
}

}  // namespace attnjit::contract
