// The traps of §5 that lie in shapes, lengths and scales.
#include "append_case.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using check::Lengths;

ContractCases head_ratios() {
  ContractCases cases;
  for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 29, 32, 64, 71, 128}) {
    const int kv_heads = ratio <= 8 ? 3 : 1;
    const std::string name = "ratio " + std::to_string(ratio);
    cases.push_back(reference_case(
        "decode, " + name,
        decode_of(check::gqa_descriptor(ratio * kv_heads, kv_heads, 64, 2), {65, 0, 700, 2})));
    cases.push_back(reference_case(
        "prefill, " + name,
        prefill_of(check::ragged_descriptor(ratio * kv_heads, kv_heads, 64), edge_prefills())));
  }
  return cases;
}

ContractCases mla_heads() {
  ContractCases cases;
  for (const int heads : {1,  2,  3,  4,  7,  8,  9,  12, 15, 16, 17,  20,  24,  31,
                          32, 33, 40, 48, 63, 64, 65, 80, 96, 99, 112, 126, 127, 128}) {
    cases.push_back(
        reference_case(std::to_string(heads) + " heads", mla_decode(heads, {65, 0, 1300, 1})));
  }
  return cases;
}

ContractCases lengths() {
  ContractCases cases;
  for (const int length : {0, 1, 63, 64, 65, 127, 128, 129, 8736, 163840}) {
    const std::string name = std::to_string(length) + " keys";
    cases.push_back(reference_case("GQA decode, " + name, gqa_decode({length, 5, length}, 2)));
    cases.push_back(reference_case("MLA decode, " + name, mla_decode(16, {length, 5, length})));
    const int queries = length > 8736 ? 3 : 129;
    cases.push_back(
        reference_case("prefill, " + name, prefill_of(paged_12_4(), {{queries, length}, {3, 5}})));
  }
  for (const int queries : {0, 1, 63, 64, 65, 127, 128, 129, 8736}) {
    cases.push_back(reference_case("prefill, " + std::to_string(queries) + " queries",
                                   prefill_of(ragged_12_4(), {{queries, 130}, {3, 5}})));
  }
  return cases;
}

// Query tokens times heads on both sides of 64 rows.
ContractCases rows_crossing_64() {
  ContractCases cases;
  for (const auto& [heads, seqlen_q] :
       std::vector<std::pair<int, int>>{{9, 7}, {16, 4}, {13, 5}, {40, 3}, {7, 9}, {8, 8}}) {
    cases.push_back(reference_case(
        std::to_string(heads) + " heads, " + std::to_string(seqlen_q) + " query tokens",
        mla_decode(heads, {900, 130, 8, 0}, seqlen_q)));
  }
  return cases;
}

ContractCases many_rows() {
  check::PrefillCase dense = prefill_of(check::ragged_descriptor(1, 1, 64), {{70000, 40}});
  dense.query_layout = check::QueryLayout::bshd;
  return {reference_case("ragged",
                         prefill_of(check::ragged_descriptor(1, 1, 64), {{3, 3}, {70000, 40}})),
          reference_case("dense", dense)};
}

ContractCases many_requests() {
  Lengths prefills;
  Lengths new_tokens;
  for (int b = 0; b < 70000; ++b) {
    prefills.emplace_back(b % 3, b % 7);
    new_tokens.emplace_back(b % 7 > 0 ? 1 : 0, b % 7);
  }
  const AttentionDescriptor small_pages =
      with_pages(check::paged_descriptor(1, 1, 64), 8, KvLayoutTag::nhd);
  return {reference_case("decode", decode_of(check::gqa_descriptor(2, 1, 64, 1),
                                             check::varied_lengths(70000, 4, 7))),
          reference_case("prefill", prefill_of(small_pages, prefills)),
          append_case("cache write", prefill_of(small_pages, new_tokens), AppendForm::block_table)};
}

ContractCases scales() {
  ContractCases cases;
  for (const double scale : {1.352337788608801, 0.7, -0.4, 1e-20}) {
    check::DecodeCase gqa = gqa_decode(edge_lengths());
    check::DecodeCase mla = mla_decode(16, edge_lengths());
    check::PrefillCase prefill = prefill_of(ragged_12_4(), edge_prefills());
    gqa.softmax_scale = mla.softmax_scale = prefill.softmax_scale = scale;
    const std::string name = ", scale " + std::to_string(scale);
    cases.push_back(reference_case("GQA decode" + name, gqa));
    cases.push_back(reference_case("MLA decode" + name, mla));
    cases.push_back(reference_case("prefill" + name, prefill));
  }
  return cases;
}

// Tiles that are skipped before, between and behind those that are not.
ContractCases skipped_tiles() {
  AttentionDescriptor chunked = check::with_mask(ragged_12_4(), MaskKind::chunked);
  chunked.chunk_size = 100;
  AttentionDescriptor sparse = ragged_12_4();
  sparse.sparsity = Sparsity::block;
  sparse.sparsity_block = 64;
  const Lengths long_requests = {{300, 1000}, {129, 700}, {1, 513}};
  check::DecodeCase windowed = gqa_decode({9000, 129, 5000}, 2);
  windowed.descriptor = with_window(windowed.descriptor, 99, 0);
  return {
      reference_case("window", prefill_of(with_window(ragged_12_4(), 99, 0), long_requests)),
      reference_case("window over pages",
                     prefill_of(with_window(paged_12_4(), 99, 3), long_requests)),
      reference_case("chunked", prefill_of(chunked, long_requests)),
      reference_case("block-sparse", prefill_of(sparse, long_requests)),
      reference_case("decode, window", windowed),
  };
}

ContractCases page_strides() {
  ContractCases cases;
  check::DecodeCase gqa = gqa_decode(edge_lengths(), 2);
  check::DecodeCase mla = mla_decode(16, edge_lengths());
  check::PrefillCase prefill = prefill_of(paged_12_4(), edge_prefills());
  for (const check::CacheArrangement arrangement :
       {check::CacheArrangement::layered, check::CacheArrangement::per_request}) {
    gqa.arrangement = mla.arrangement = prefill.arrangement = arrangement;
    const std::string name(to_string(arrangement));
    cases.push_back(reference_case("GQA decode, " + name, gqa));
    cases.push_back(reference_case("MLA decode, " + name, mla));
    cases.push_back(reference_case("prefill, " + name, prefill));
  }
  return cases;
}

// A request is split by the keys that its window shows: long ones in few parts or in one.
ContractCases window_splits() {
  ContractCases cases;
  for (const int left : {0, 63, 200, 4095}) {
    for (check::DecodeCase windowed :
         {gqa_decode({9000, 0, 20000, 3}, 2), mla_decode(16, {9000, 0, 20000, 3}, 2)}) {
      windowed.descriptor = with_window(windowed.descriptor, left, 0);
      cases.push_back(reference_case(describe(windowed), windowed));
    }
  }
  return cases;
}

}  // namespace

std::vector<Requirement> shape_trap_rows() {
  return {
      {"§5 skipped tiles", "The state of the softmax and of the mask survives a skipped tile",
       skipped_tiles(), ""},
      {"§5 page stride", "The stride of a page need not be page_size * Hk * D", page_strides(), ""},
      {"§5 window splits", "Splits count the keys that a window shows: none is empty, none is NaN",
       window_splits(), ""},
      {"§5 head ratios", "Head ratios 1 to 10, 12, 16, 29, 32, 64, 71 and 128", head_ratios(), ""},
      {"§5 MLA heads", "MLA with 1 to 128 heads, 12, 20 and 40 among them", mla_heads(), ""},
      {"§5 lengths", "Lengths 0, 1, 63, 64, 65, 127, 128, 129, 8736 and 163840", lengths(), ""},
      {"§5 rows crossing 64", "Query tokens times heads cross the 64 rows of a tile",
       rows_crossing_64(), ""},
      {"§5 70000 rows", "More query rows than a grid is high", many_rows(), ""},
      {"§5 70000 requests", "More requests than a grid is high", many_requests(), ""},
      {"§5 scales", "Scales that are no powers of two, negative or tiny ones", scales(), ""},
  };
}

}  // namespace attnjit::contract
