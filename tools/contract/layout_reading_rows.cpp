// §4.1 to §4.8: how cache addresses, block tables, V, lengths, masks and strides are read.
#include "append_case.hpp"
#include "bit_equality_case.hpp"
#include "decode_facade_case.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "prefill_facade_case.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Arrangement = check::CacheArrangement;
using Code = FlashMlaErrorCode;

template <typename Case>
Case arranged(Case problem, Arrangement arrangement) {
  problem.arrangement = arrangement;
  return problem;
}

// One rule for every arrangement: base + b stride_b + block_table[b, i] stride_block + ...
Requirement addressing_row() {
  ContractCases cases;
  for (const Arrangement arrangement :
       {Arrangement::pool, Arrangement::per_request, Arrangement::layered}) {
    const std::string name(to_string(arrangement));
    for (const KvLayoutTag tag : {KvLayoutTag::nhd, KvLayoutTag::hnd}) {
      const std::string tagged = name + " " + std::string(to_string(tag));
      check::DecodeCase gqa = gqa_decode(edge_lengths());
      gqa.descriptor.kv_layout_tag = tag;
      cases.push_back(reference_case("decode, " + tagged, arranged(gqa, arrangement)));
      cases.push_back(reference_case(
          "prefill, " + tagged,
          arranged(prefill_of(with_pages(paged_12_4(), 64, tag), edge_prefills()), arrangement)));
    }
    cases.push_back(
        reference_case("MLA, " + name, arranged(mla_decode(16, edge_lengths()), arrangement)));
  }
  return {"§4.1",
          "One rule of 64-bit strides finds a token: caches per request, pools, layers between a "
          "layer's pages, heads inside or outside of rows",
          cases, ""};
}

std::vector<Requirement> table_and_value_rows() {
  check::DecodeCase other_dim = gqa_decode(edge_lengths());
  other_dim.descriptor = with_dims(other_dim.descriptor, 192, 128);
  return {
      {"§4.2",
       "A block table lists pages in the order of tokens, in any physical order; past a request's "
       "pages it may hold anything",
       {permutation_case("decode", gqa_decode({700, 65, 1300})),
        permutation_case("MLA", mla_decode(16, {700, 65, 1300})),
        permutation_case("prefill", prefill_of(paged_12_4(), edge_prefills())),
        equal_bits_case(gqa_decode({700, 65, 1300}), Change::table_padding),
        equal_bits_case(mla_decode(16, {700, 65, 1300}), Change::table_padding)},
       ""},
      {"§4.3",
       "V is a tensor of its own, of K's columns or others, or the first columns of K",
       {reference_case("as wide as K", gqa_decode(edge_lengths())),
        reference_case("192 and 128", other_dim),
        reference_case("the first 512 of 576", mla_decode(16, edge_lengths())),
        append_case(
            "a latent cache is written once",
            [] {
              check::PrefillCase latent = prefill_of(
                  with_dims(check::paged_descriptor(1, 1, 576), 576, 512), {{3, 3}, {40, 130}});
              latent.descriptor.value_source = ValueSource::prefix_of_k;
              return latent;
            }(),
            AppendForm::block_table)},
       ""},
  };
}

std::vector<Requirement> length_rows() {
  return {
      {"§4.4",
       "Too few blocks are an error; spare ones pass with a mark, and are an error under the exact "
       "policy; the longest sequence counts",
       {refused_as("too few", Code::cache_overflow, metadata_with([](LegalDecode& d) {
                     d.seq_lens = {193, 1};
                   })),
        holds("spare blocks are marked",
              [] {
                LegalDecode decode;
                decode.seq_lens = {60, 64};
                return metadata_of(decode).has_spare_blocks && !metadata_of({}).has_spare_blocks;
              }),
        refused_as("spare blocks, exact", Code::block_count, metadata_with([](LegalDecode& d) {
                     d.seq_lens = {60, 64};
                     d.options.block_count = BlockCountPolicy::exact;
                   })),
        flash_mla_case("spare blocks on the GPU", flash_mla_problem(8, 4, 128, 1, {60, 64}))},
       ""},
      {"§4.5",
       "seq_lens counts the tokens being decoded; query i of s_q sees keys below seq_len - s_q + i "
       "+ 1; nothing to see gives 0 and LSE -inf",
       {reference_case("four tokens of requests of 0 to 700", gqa_decode(edge_lengths(), 4)),
        reference_case("MLA, four tokens", mla_decode(16, {0, 1, 2, 3, 4, 65, 700}, 4)),
        reference_case("prefill with more queries than keys",
                       prefill_of(ragged_12_4(), {{100, 0}, {128, 63}, {63, 1}, {300, 64}}))},
       ""},
  };
}

check::DecodeCase masked_decode(MaskKind mask, DataType dtype, int seqlen_q, int shortage = 0) {
  check::DecodeCase decode_case = gqa_decode({0, 1, 65, 700}, seqlen_q);
  decode_case.descriptor.mask = mask;
  decode_case.descriptor.dtype_mask = dtype;
  decode_case.mask_shortage = shortage;
  return decode_case;
}

Requirement mask_row() {
  using Heads = check::MaskExtents::Heads;
  ContractCases cases;
  for (const DataType dtype : {DataType::bf16, DataType::fp16, DataType::fp32}) {
    cases.push_back(reference_case("decode, additive " + std::string(to_string(dtype)),
                                   masked_decode(MaskKind::materialized_additive, dtype, 2)));
  }
  cases.push_back(reference_case("decode, bool",
                                 masked_decode(MaskKind::materialized_bool, DataType::uint8, 2)));
  cases.push_back(
      reference_case("decode, keys past the mask are hidden",
                     masked_decode(MaskKind::materialized_bool, DataType::uint8, 2, 70)));
  for (const bool has_batch : {true, false}) {
    for (const bool has_queries : {true, false}) {
      for (const Heads heads : {Heads::one, Heads::q}) {
        check::PrefillCase masked =
            prefill_of(check::with_mask(ragged_12_4(), MaskKind::materialized_bool),
                       {{129, 129}, {0, 65}, {64, 300}, {1, 127}});
        masked.mask_extents = {has_batch, has_queries, heads};
        cases.push_back(reference_case(std::string("prefill, for") +
                                           (has_batch ? " each request," : " all requests,") +
                                           (has_queries ? " each query," : " all queries,") +
                                           (heads == Heads::q ? " each head" : " all heads"),
                                       masked));
      }
    }
  }
  cases.push_back(accepted("longer than the longest sequence", decode_with([](FlashMlaCall& c) {
                             c.mask = fake_view(DataType::uint8, {2, 1, 1, 500});
                           })));
  return {"§4.6",
          "A mask is bool or additive, is broadcast over dimensions of 1, may be longer than "
          "needed, and replaces causal; lengths still hold",
          cases, ""};
}

std::vector<Requirement> stride_rows() {
  check::PrefillCase padded = prefill_of(ragged_12_4(), edge_prefills());
  padded.row_padding = 8;
  const auto transposed = [](FlashMlaPrefillCall& c) {
    c.q = permuted_view(fake_view(DataType::bf16, {2, 100, 8, 128}), {0, 2, 1, 3});
  };
  return {
      {"§4.7",
       "Decode wants q contiguous; prefill wants stride 1 in D alone",
       {refused_as("decode, a gap", Code::inner_contiguity,
                   decode_with([](FlashMlaCall& c) { c.q.strides[1] = 136; })),
        reference_case("prefill, gaps", padded),
        refused_field("prefill, columns apart", "q",
                      run_prefill_with(ragged_12_4(), [](PrefillCall& c) { c.q.strides[2] = 2; }))},
       ""},
      {"§4.8",
       "Strides fall in the listed order and do not overlap; the message names the layout tag "
       "under which the same memory is accepted",
       {refused_as("BSHD as BHSD", Code::stride_order, prefill_with(transposed)),
        holds("the message names a tag",
              [transposed] {
                try {
                  prefill_with(transposed)();
                } catch (const FlashMlaError& error) {
                  return std::string(error.what()).find("layout tag") != std::string::npos;
                }
                return false;
              }),
        reference_case("the same memory by its tag",
                       prefill_of(dense_12_4(KvLayoutTag::bshd), {{65, 130}, {65, 130}})),
        reference_case("and by the other",
                       prefill_of(dense_12_4(KvLayoutTag::bhsd), {{65, 130}, {65, 130}})),
        refused_as("stride 0 of two requests", Code::stride_order,
                   decode_with([](FlashMlaCall& c) { c.k_cache.strides[0] = 0; })),
        accepted("stride 0 of one request",
                 [] {
                   LegalDecode decode;
                   decode.q_shape[0] = decode.kv_shape[0] = 1;
                   decode.block_table = fake_view(DataType::int32, {1, 3});
                   decode.seq_lens = {130};
                   metadata_of(decode);
                 })},
       ""},
  };
}

}  // namespace

std::vector<Requirement> layout_reading_rows() {
  return joined(joined({addressing_row()}, table_and_value_rows()),
                joined(joined(length_rows(), {mask_row()}), stride_rows()));
}

}  // namespace attnjit::contract
