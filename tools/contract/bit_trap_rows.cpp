// The traps of §5 that show in bits, or that data which is all alike cannot show.
#include "bit_equality_case.hpp"
#include "problems.hpp"
#include "random_data_case.hpp"
#include "reference_case.hpp"
#include "rows.hpp"
#include "suffix_case.hpp"

namespace attnjit::contract {
namespace {

// Partial blocks and an empty request, of every attention kernel of decode.
std::vector<check::DecodeCase> decodes() {
  const std::vector<int> seq_lens = {65, 0, 300, 1300};
  return {gqa_decode(seq_lens, 2), mla_decode(16, seq_lens), mla_decode(128, seq_lens)};
}

// Over pages, ragged and dense keys; queries are dense.
std::vector<check::PrefillCase> prefills() {
  std::vector<check::PrefillCase> cases;
  for (const AttentionDescriptor& descriptor :
       {paged_12_4(), ragged_12_4(), dense_12_4(KvLayoutTag::bshd)}) {
    check::PrefillCase prefill_case =
        prefill_of(descriptor, {{129, 129}, {0, 65}, {64, 300}, {100, 63}});
    prefill_case.query_layout = check::QueryLayout::bshd;
    prefill_case.unowned_rows = 3;
    prefill_case.row_padding = 8;
    cases.push_back(prefill_case);
  }
  return cases;
}

// Of kv heads, and of tensors of requests, that there are several of.
bool may_change(const AttentionDescriptor& descriptor, Change change) {
  const bool has_request_tensors = descriptor.kv_layout != KvLayout::ragged;
  return (change != Change::other_heads || descriptor.num_kv_heads > 1) &&
         (change != Change::other_requests || has_request_tensors) &&
         (change != Change::table_padding || descriptor.kv_layout == KvLayout::paged);
}

ContractCases changed(Change change) {
  ContractCases cases;
  for (const check::DecodeCase& decode_case : decodes()) {
    if (may_change(decode_case.descriptor, change)) {
      cases.push_back(equal_bits_case(decode_case, change));
    }
  }
  for (const check::PrefillCase& prefill_case : prefills()) {
    if (may_change(prefill_case.descriptor, change)) {
      cases.push_back(equal_bits_case(prefill_case, change));
    }
  }
  return cases;
}

ContractCases permuted() {
  ContractCases cases;
  for (const check::DecodeCase& decode_case : decodes()) {
    cases.push_back(permutation_case(describe(decode_case), decode_case));
  }
  for (const int page_size : {1, 16, 64}) {
    cases.push_back(permutation_case(
        "prefill, pages of " + std::to_string(page_size),
        prefill_of(with_pages(paged_12_4(), page_size, KvLayoutTag::nhd), edge_prefills())));
  }
  return cases;
}

ContractCases sink_oracles() {
  ContractCases cases;
  for (const check::DecodeCase& decode_case : decodes()) {
    cases.push_back(sink_oracle_case(describe(decode_case), decode_case));
    check::DecodeCase windowed = decode_case;
    windowed.descriptor = with_window(windowed.descriptor, 127, 0);
    cases.push_back(sink_oracle_case(describe(windowed), windowed));
  }
  return cases;
}

std::vector<Requirement> change_rows() {
  return {
      {"§5 unused slots", "NaN or infinity in slots that nothing owns changes not one bit",
       joined(changed(Change::infinite_unused_slots), changed(Change::finite_unused_slots)), ""},
      {"§5 other requests", "NaN in other requests' pages changes not one bit",
       changed(Change::other_requests), ""},
      {"§5 other heads", "NaN in other kv heads changes not one bit", changed(Change::other_heads),
       ""},
      {"§5 other rows", "NaN in other rows of q changes not one bit", changed(Change::other_rows),
       ""},
      {"§5 permuted block table", "Physical pages in another order give the same bits", permuted(),
       ""},
      {"§5 block table padding",
       "2147480000 past a request's pages is never followed: a page there gives the same bits",
       changed(Change::table_padding), ""},
  };
}

std::vector<Requirement> oracle_rows() {
  return {
      {"§5 sink oracle", "Scale 0 and V = 1 give keys / (keys + e^sink)", sink_oracles(), ""},
      {"§5 cached prefix",
       "A prompt in one go and its suffix over a cached prefix agree",
       {suffix_case("300 tokens, 64 cached", 12, 4, 128, 300, 64),
        suffix_case("300 tokens, 171 cached", 12, 4, 128, 300, 171),
        suffix_case("300 tokens, all but one cached", 12, 4, 128, 300, 299)},
       ""},
      {"§5 batch",
       "A batch-invariant result does not depend on the batch, to the bit",
       {[] {
         check::DecodeCase invariant = mla_decode(16, {9000, 300, 20000, 0, 65});
         invariant.descriptor.batch_invariant = true;
         return batch_invariance_case("MLA, 16 heads", invariant);
       }()},
       ""},
      {"§5 no constant data",
       "Tensors hold random data, which a wrong mask shows in",
       {random_data_case("GQA decode", gqa_decode({65, 0, 300})),
        random_data_case("MLA decode", mla_decode(16, {65, 0, 300})),
        random_data_case("prefill", prefill_of(ragged_12_4(), edge_prefills()))},
       ""},
  };
}

}  // namespace

std::vector<Requirement> bit_trap_rows() {
  return joined(change_rows(), oracle_rows());
}

}  // namespace attnjit::contract
