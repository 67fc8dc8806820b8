// R1 to R21: what FlashMLA's tensor-shape reference says of its symbols, of flash_mla_with_kvcache
// and of get_mla_metadata.
#include <array>

#include "decode_facade_case.hpp"
#include "default_scale.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Code = FlashMlaErrorCode;

// Hq 8, Hk 4, D 128.
check::DecodeCase decode_8_4(std::vector<int> seq_lens, int seqlen_q = 1) {
  return flash_mla_problem(8, 4, 128, seqlen_q, std::move(seq_lens));
}

check::DecodeCase masked(MaskKind mask, DataType dtype_mask) {
  check::DecodeCase decode_case = decode_8_4({200, 65, 0});
  decode_case.descriptor.mask = mask;
  decode_case.descriptor.dtype_mask = dtype_mask;
  return decode_case;
}

// An array of extents, for the longest request of `tokens`.
bool has_blocks(int tokens, int blocks) {
  LegalDecode decode;
  decode.kv_shape[2] = blocks;
  decode.block_table = fake_view(DataType::int32, {2, blocks});
  decode.seq_lens = {tokens, 1};
  decode.options.block_count = BlockCountPolicy::exact;
  return !metadata_of(decode).has_spare_blocks;
}

std::vector<Requirement> symbol_rows() {
  return {
      {"R1",
       "B, S, P, T, H, Hq, Hk <= Hq and D are read off the shapes",
       {holds("metadata of [2, 8, 1, 128] and [2, 4, 3, 64, 128]",
              [] {
                const MlaMetadata metadata = metadata_of({});
                const AttentionDescriptor& descriptor = metadata.descriptor;
                return metadata.batch == 2 && metadata.seqlen_q == 1 && metadata.num_blocks == 3 &&
                       descriptor.num_q_heads == 8 && descriptor.num_kv_heads == 4 &&
                       descriptor.head_dim_qk == 128 && metadata.max_seqlen_kv == 130;
              }),
        refused_as("Hk above Hq", Code::head_ratio,
                   metadata_with([](LegalDecode& d) { d.kv_shape[1] = 16; }))},
       ""},
      {"R2",
       "Hq = G * ratio, of G = Hk groups",
       {holds("8 heads in 4 groups of 2",
              [] { return metadata_of({}).descriptor.q_per_kv() == 2; }),
        flash_mla_case("8 over 4 heads", decode_8_4({130, 64}))},
       ""},
      {"R3",
       "Nblk = ceil((P + T) / 64)",
       {holds("1, 64, 65 and 130 tokens",
              [] {
                return has_blocks(1, 1) && has_blocks(64, 1) && has_blocks(65, 2) &&
                       has_blocks(130, 3);
              })},
       ""},
      {"R4",
       "A block of the paged cache holds 64 tokens",
       {refused_as("blocks of 32", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) { d.kv_shape[3] = 32; })),
        holds("the descriptor's page", [] { return metadata_of({}).descriptor.page_size == 64; })},
       ""},
      {"R5",
       "Tensors are row-major and contiguous unless it is said otherwise",
       {holds("strides of the metadata",
              [] {
                const MlaMetadata metadata = metadata_of({});
                return metadata.q_strides == std::array<std::int64_t, 4>{1024, 128, 128, 1} &&
                       metadata.kv_strides ==
                           std::array<std::int64_t, 5>{98304, 24576, 8192, 128, 1};
              }),
        flash_mla_case("contiguous tensors", decode_8_4({1, 200}))},
       ""},
  };
}

std::vector<Requirement> tensor_rows() {
  check::DecodeCase uneven = flash_mla_problem(8, 4, 192, 1, {200, 65, 0});
  uneven.descriptor.head_dim_v = 128;
  return {
      {"R6",
       "q is [B, Hq, 1, D]",
       {flash_mla_case("one query token", decode_8_4({130, 64, 200, 1, 0})),
        refused_as("rank 3", Code::shape_mismatch, metadata_with([](LegalDecode& d) {
                     d.q_shape = {2, 8, 128};
                   }))},
       ""},
      {"R7",
       "k_cache is [B, Hk, Nblk, 64, D]",
       {flash_mla_case("blocks of each request", decode_8_4({64, 129})),
        refused_as("Nblk of another cache", Code::shape_mismatch,
                   decode_with([](FlashMlaCall& c) { c.k_cache.shape[2] = 2; }))},
       ""},
      {"R8",
       "v_cache is as k_cache",
       {flash_mla_case("V of its own", decode_8_4({128, 1})),
        flash_mla_case("V with its own D", uneven),
        refused_as("Nblk of another cache", Code::shape_mismatch,
                   decode_with([](FlashMlaCall& c) { c.v_cache.shape[2] = 2; }))},
       ""},
      {"R9",
       "block_table [B, Nblk] says in which physical block a logical one lies",
       {flash_mla_case("blocks in any order", decode_8_4({700, 640, 1})),
        refused_as("other extents", Code::block_count, metadata_with([](LegalDecode& d) {
                     d.block_table = fake_view(DataType::int32, {2, 2});
                   }))},
       ""},
  };
}

std::vector<Requirement> call_rows() {
  check::DecodeCase scaled = decode_8_4({130, 64, 1});
  scaled.softmax_scale = 1.352337788608801;
  check::DecodeCase unscaled = decode_8_4({130, 64, 1});
  unscaled.softmax_scale = default_scale(128);
  return {
      {"R10",
       "seq_lens counts prompt and decoded tokens",
       {flash_mla_case("lengths of each request", decode_8_4({700, 0, 65, 1})),
        refused_as("a negative length", Code::shape_mismatch, metadata_with([](LegalDecode& d) {
                     d.seq_lens = {1, -1};
                   })),
        refused_as("a length missing", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) { d.seq_lens = {1}; }))},
       ""},
      {"R11",
       "The mask [B, 1, 1, P + T] is optional; without it attention is causal",
       {flash_mla_case("no mask", decode_8_4({200, 65, 1}, 2)),
        flash_mla_case("bool mask", masked(MaskKind::materialized_bool, DataType::uint8)),
        flash_mla_case("additive mask", masked(MaskKind::materialized_additive, DataType::fp32))},
       ""},
      {"R12",
       "The metadata of get_mla_metadata goes with the call",
       {flash_mla_case("split of the metadata", decode_8_4({9000, 64})),
        flash_mla_case("a scale of the caller's", scaled),
        flash_mla_case("1 / sqrt(D) where none is given", unscaled),
        refused_as("a call of another batch", Code::shape_mismatch,
                   decode_with([](FlashMlaCall& c) { c.q.shape[0] = 3; }))},
       ""},
      {"R13",
       "The output is [B, Hq, 1, D]",
       {flash_mla_case("every output and no other is written", decode_8_4({65, 64, 63}))},
       ""},
  };
}

std::vector<Requirement> layout_rows() {
  return {
      {"R14",
       "q is contiguous",
       {refused_as("a gap between heads", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.q.strides[1] = 256; }))},
       ""},
      {"R15",
       "Caches are contiguous within (Blk, D)",
       {refused_as("a gap between rows of K", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.k_cache.strides[3] = 256; })),
        refused_as("a gap between columns of V", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.v_cache.strides[4] = 2; })),
        accepted("a gap between blocks", decode_with([](FlashMlaCall& c) {
                   c.k_cache.strides = {108000, 27000, 9000, 128, 1};
                 }))},
       ""},
      {"R16",
       "block_table is contiguous",
       {refused_as("a gap between rows", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.block_table.strides[0] = 4; }))},
       ""},
      {"R17",
       "Hq is a multiple of Hk",
       {flash_mla_case("4 over 4 heads", flash_mla_problem(4, 4, 128, 1, {130, 64})),
        flash_mla_case("20 over 4 heads", flash_mla_problem(20, 4, 128, 1, {130, 64})),
        refused_as("7 over 4", Code::head_ratio,
                   metadata_with([](LegalDecode& d) { d.q_shape[1] = 7; }))},
       ""},
      {"R18",
       "The last block may be partial: seq_lens keeps its unused slots out",
       {flash_mla_case("one slot used, one slot left", decode_8_4({65, 63, 127, 1}))},
       ""},
  };
}

std::vector<Requirement> metadata_rows() {
  return {
      {"R19",
       "get_mla_metadata validates shapes and strides; it makes no tensor",
       {accepted("without a GPU, of a table that is not there",
                 metadata_with([](LegalDecode& d) { d.block_table.data = nullptr; })),
        refused_as("extents that no memory holds", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) {
                     d.q_shape = {1 << 30, 8, 1, 128};
                     d.kv_shape = {1 << 30, 4, 1 << 30, 64, 128};
                   }))},
       ""},
      {"R20",
       "get_mla_metadata wants heads that group, of one batch and one D",
       {refused_as("Hq 6, Hk 4", Code::head_ratio,
                   metadata_with([](LegalDecode& d) { d.q_shape[1] = 6; })),
        refused_as("another batch", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) { d.kv_shape[0] = 3; })),
        refused_as("another D", Code::shape_mismatch,
                   metadata_with([](LegalDecode& d) { d.q_shape[3] = 64; }))},
       ""},
      {"R21",
       "get_mla_metadata wants a block_table that covers the longest sequence",
       {refused_as("193 tokens of 3 blocks", Code::cache_overflow,
                   metadata_with([](LegalDecode& d) {
                     d.seq_lens = {64, 193};
                   })),
        accepted("192 tokens of 3 blocks", metadata_with([](LegalDecode& d) {
                   d.seq_lens = {64, 192};
                 }))},
       ""},
  };
}

}  // namespace

std::vector<Requirement> decode_rows() {
  return joined(joined(symbol_rows(), joined(tensor_rows(), call_rows())),
                joined(layout_rows(), metadata_rows()));
}

}  // namespace attnjit::contract
