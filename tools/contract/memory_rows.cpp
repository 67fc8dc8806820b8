// R37 to R43: what FlashMLA's tensor-shape reference says of memory layout.
#include "append_case.hpp"
#include "decode_facade_case.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "prefill_facade_case.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Code = FlashMlaErrorCode;

check::DecodeCase decode_8_4(std::vector<int> seq_lens) {
  return flash_mla_problem(8, 4, 128, 1, std::move(seq_lens));
}

check::DecodeCase with_type(check::DecodeCase decode_case, DataType dtype) {
  decode_case.descriptor = with_types(decode_case.descriptor, dtype);
  return decode_case;
}

// q in e4m3, k and v in `kv`.
ContractCase fp8_prefill(const std::string& name, const AttentionDescriptor& descriptor,
                         DataType kv) {
  return reference_case(
      name, prefill_of(with_fp8(descriptor, DataType::fp8_e4m3, kv, ScaleGrain::per_head),
                       edge_prefills()));
}

std::vector<Requirement> stride_rows() {
  check::PrefillCase strided = flash_mla_prefill_problem(
      {.num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128}, 2, 100, 150);
  strided.row_padding = 16;
  return {
      {"R37",
       "D and Blk, the inner dimensions, are contiguous",
       {refused_as("rows of K apart", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.k_cache.strides[3] = 136; })),
        refused_as("columns of K apart", Code::inner_contiguity,
                   mha_with([](MhaKvCacheCall& c) { c.k_cache.strides[3] = 128; })),
        flash_mla_case("contiguous", decode_8_4({200}))},
       ""},
      {"R38",
       "Blocks have 64 tokens; block_table lists them in the order of the tokens",
       {flash_mla_case("many blocks", decode_8_4({700, 650})),
        refused_as("blocks of 128", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) { d.kv_shape[3] = 128; }))},
       ""},
      {"R39",
       "fp8, bf16 and fp16 are supported; metadata and indices are integers or fp32",
       {flash_mla_case("bf16", decode_8_4({130, 1})),
        flash_mla_case("fp16", with_type(decode_8_4({130, 1}), DataType::fp16)),
        reference_case("fp16 prefill",
                       prefill_of(with_types(ragged_12_4(), DataType::fp16), edge_prefills())),
        fp8_prefill("e4m3 ragged prefill", ragged_12_4(), DataType::fp8_e4m3),
        fp8_prefill("e4m3 paged prefill", paged_12_4(), DataType::fp8_e4m3),
        fp8_prefill("e5m2 k and v", paged_12_4(), DataType::fp8_e5m2),
        refused_as("block_table in fp32", Code::dtype_mismatch,
                   metadata_with([](LegalDecode& d) { d.block_table.dtype = DataType::fp32; }))},
       ""},
      {"R40",
       "Batch, head and sequence dimensions may be strided if strides are monotonic",
       {flash_mla_prefill_case("gaps between rows", strided),
        refused_as("blocks outside heads", Code::stride_order, decode_with([](FlashMlaCall& c) {
                     c.k_cache.strides = {98304, 8192, 32768, 128, 1};
                   })),
        accepted("a gap between requests",
                 decode_with([](FlashMlaCall& c) { c.k_cache.strides[0] *= 2; }))},
       ""},
  };
}

std::vector<Requirement> mapping_rows() {
  return {
      {"R41",
       "k_cache[b, h] is blk0 | blk1 | ..., each a slab of 64 rows of D columns",
       {flash_mla_case("a cache of each request", decode_8_4({640, 129})),
        mha_case("the same in prefill",
                 mha_problem({.num_heads = 3, .head_dim = 64}, 64, {640, 129}))},
       ""},
      {"R42",
       "Query heads 0 and 1 of 8 read kv head 0 of 4, 2 and 3 head 1: h / ratio, never h mod "
       "Hk",
       {flash_mla_case("8 over 4 heads", decode_8_4({200, 65, 1})),
        flash_mla_case("20 over 4 heads", flash_mla_problem(20, 4, 128, 1, {200, 65, 1})),
        reference_case("12 over 4 heads in prefill", prefill_of(ragged_12_4(), edge_prefills()))},
       ""},
      {"R43",
       "Tokens 0 to 63 lie in block_table[b, 0], 64 to 127 in [b, 1], and so on",
       {mha_write_case("written by mha_fwd_kvcache",
                       mha_problem({.num_heads = 3, .head_dim = 64}, 192, {192, 300})),
        append_case("written by append_kv_cache",
                    prefill_of(paged_12_4(), {{3, 3}, {64, 130}, {1, 65}, {0, 9}, {129, 129}}),
                    AppendForm::block_table)},
       ""},
  };
}

}  // namespace

std::vector<Requirement> memory_rows() {
  return joined(stride_rows(), mapping_rows());
}

}  // namespace attnjit::contract
