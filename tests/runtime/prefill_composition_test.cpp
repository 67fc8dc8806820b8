// The arguments of prefill calls whose masks are composed, and of an additive bias beside a mask.
#include <cstdint>
#include <vector>

#include "bad_call.hpp"
#include "prefill_arguments.hpp"
#include "prefill_calls.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;
using BadPrefill = BadCall<PrefillCall>;

std::vector<Violation> violations_of_call(const PrefillCase& prefill) {
  return test::violations_of([&] { check_prefill_call(prefill.descriptor, prefill.call); });
}

void check_bad_prefills(const std::vector<BadPrefill>& bad_calls, const PrefillCase& prefill) {
  check_bad_calls(bad_calls, prefill.call,
                  [&](const PrefillCall& call) { check_prefill_call(prefill.descriptor, call); });
}

PrefillCase composed(PrefillCase prefill, const char* formula) {
  prefill.descriptor.mask = MaskKind::composed;
  prefill.descriptor.mask_formula = formula;
  return prefill;
}

TEST_CASE("a call brings what each mask of a composed one takes, and nothing else") {
  PrefillCase prefill =
      composed(ragged(), "causal and document or prefix_lm and materialized_bool");
  prefill.call.q_segments = integers({50});
  prefill.call.kv_segments = integers({70});
  prefill.call.prefix_lens = integers({2});
  prefill.call.mask = bytes({1, 8, 40, 60});
  CHECK(violations_of_call(prefill).empty());
  check_bad_prefills({{"q_segments", "must be given", [](PrefillCall& c) { c.q_segments = {}; }},
                      {"kv_segments", "must be given", [](PrefillCall& c) { c.kv_segments = {}; }},
                      {"prefix_lens", "must be given", [](PrefillCall& c) { c.prefix_lens = {}; }},
                      {"mask", "must be given", [](PrefillCall& c) { c.mask = {}; }}},
                     prefill);
  check_bad_prefills({{"mask",
                       "the descriptor's mask is composed of causal and document, which does not "
                       "read it",
                       [](PrefillCall& c) {
                         c.mask = bytes({1, 1, 1, 9});
                       }}},
                     [] {
                       PrefillCase documents = composed(ragged(), "document and causal");
                       documents.call.q_segments = integers({50});
                       documents.call.kv_segments = integers({70});
                       return documents;
                     }());
}

TEST_CASE("segments and a mask of a composed one end in places of their own") {
  PrefillCase prefill = composed(dense(KvLayoutTag::bshd), "document and materialized_bits");
  prefill.call.q_segments = integers({2, 30});
  prefill.call.kv_segments = integers({2, 40});
  prefill.call.mask = bytes({1, 1, 31, 4});
  CHECK(violations_of_call(prefill).empty());
  const auto mask = make_prefill_arguments(prefill.descriptor, prefill.call).mask;
  CHECK(mask.keys == 32);
  CHECK(mask.queries == 31);
  CHECK(mask.segment_keys == 40);
  const PrefillCase packed = composed(ragged(), "document and causal");
  CHECK(make_prefill_arguments(packed.descriptor, packed.call).mask.segment_keys == INT32_MAX);
}

PrefillCase biased(PrefillCase prefill) {
  prefill.descriptor.score_modifier = ScoreModifier::additive_bias;
  prefill.call.bias = fp32_numbers({2, 8, 30, 40}, 20);
  return prefill;
}

TEST_CASE("an additive bias lies beside any mask, full or broadcast") {
  PrefillCase prefill = biased(dense(KvLayoutTag::bshd));
  CHECK(violations_of_call(prefill).empty());
  prefill.descriptor.mask = MaskKind::materialized_additive;
  prefill.descriptor.dtype_mask = DataType::bf16;
  prefill.descriptor.dtype_bias = DataType::fp16;
  prefill.call.mask = elements({1, 1, 1, 50}, 21);
  prefill.call.bias = contiguous_view(fake_pointer(20), DataType::fp16, {1, 8, 1, 44});
  CHECK(violations_of_call(prefill).empty());
  const auto mask = make_prefill_arguments(prefill.descriptor, prefill.call).mask;
  CHECK(mask.mask == fake_pointer(21));
  CHECK(mask.bias == fake_pointer(20));
  CHECK(mask.keys == 50);
  CHECK(mask.bias_keys == 44);
  CHECK(mask.bias_queries == INT32_MAX);
  CHECK(mask.bias_strides.batch == 0);
  CHECK(mask.bias_strides.head == 44);
  CHECK(mask.bias_strides.query == 0);
  CHECK(mask.bias_strides.key == 1);
}

TEST_CASE("each bad bias of a prefill is named with its rule") {
  check_bad_prefills(
      {{"bias", "must be given", [](PrefillCall& c) { c.bias = {}; }},
       {"bias", "must be fp32", [](PrefillCall& c) { c.bias.dtype = DataType::bf16; }},
       {"bias", "must have shape [2, 8, any, any]", [](PrefillCall& c) { c.bias.shape[0] = 3; }},
       {"bias", "must have shape [2, 8, any, any]", [](PrefillCall& c) { c.bias.shape[1] = 2; }},
       {"bias", "must cover 1 or 30 queries and 40 keys",
        [](PrefillCall& c) { c.bias.shape[2] = 29; }},
       {"bias", "must cover 1 or 30 queries and 40 keys",
        [](PrefillCall& c) { c.bias.shape[3] = 39; }}},
      biased(dense(KvLayoutTag::bhsd)));
  check_bad_prefills({{"bias", "the descriptor's score_modifier is none, which does not read it",
                       [](PrefillCall& c) {
                         c.bias = fp32_numbers({1, 1, 1, 9});
                       }}},
                     ragged());
  PrefillCase short_one = biased(ragged());  // lengths that the device knows
  short_one.call.bias = fp32_numbers({1, 1, 2, 3});
  CHECK(violations_of_call(short_one).empty());
}

}  // namespace
