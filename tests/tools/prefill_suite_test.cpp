// The prefill suite of `attnjit check`: its cases are legal and consistent, and few kernels serve
// them. What these make of them is the GPU's to say.
#include "prefill_suite.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/mask_formula.hpp"
#include "catch.hpp"
#include "fake_prefill_call.hpp"
#include "prefill_arguments.hpp"
#include "prefill_tensors.hpp"

namespace attnjit {
namespace {

using check::PrefillCase;
using check::PrefillSuiteCase;

bool fits(const std::vector<int>& values, int batch) {
  return static_cast<int>(values.size()) == batch;
}

TEST_CASE("every case of the prefill suite is legal, and describes each of its requests") {
  for (const PrefillSuiteCase& suite_case : check::prefill_suite()) {
    const PrefillCase& prefill_case = suite_case.prefill_case;
    INFO(suite_case.group << ": " << describe(prefill_case));
    CHECK_NOTHROW(validate(prefill_case.descriptor));
    const int batch = prefill_case.batch();
    CHECK(batch > 0);
    CHECK(fits(prefill_case.kv_lens, batch));
    CHECK((prefill_case.query_positions.empty() || fits(prefill_case.query_positions, batch)));
    CHECK((prefill_case.key_positions.empty() || fits(prefill_case.key_positions, batch)));
    CHECK(fits(prefill_case.prefix_lens, batch) ==
          has_mask(prefill_case.descriptor, MaskKind::prefix_lm));
    CHECK(prefill_case.row_padding % 8 == 0);
    if (suite_case.is_permutation) {
      CHECK(prefill_case.descriptor.kv_layout == KvLayout::paged);
    }
  }
}

TEST_CASE("the call of every case of the prefill suite passes the checks of a call") {
  for (const PrefillSuiteCase& suite_case : check::prefill_suite()) {
    const PrefillCase& prefill_case = suite_case.prefill_case;
    INFO(suite_case.group << ": " << describe(prefill_case));
    CHECK_NOTHROW(check_prefill_call(prefill_case.descriptor, check::fake_call(prefill_case)));
  }
}

TEST_CASE("few kernels serve the prefill suite") {
  std::set<std::string> descriptors;
  for (const PrefillSuiteCase& suite_case : check::prefill_suite()) {
    descriptors.insert(to_json(suite_case.prefill_case.descriptor));
  }
  CHECK(descriptors.size() <= 330);
}

TEST_CASE("the prefill suite meets every mask, modifier and layout that the descriptor has") {
  std::set<MaskKind> masks;
  std::set<ScoreModifier> modifiers;
  std::set<KvLayoutTag> tags;
  std::set<check::QueryLayout> query_layouts;
  for (const PrefillSuiteCase& suite_case : check::prefill_suite()) {
    const AttentionDescriptor& descriptor = suite_case.prefill_case.descriptor;
    masks.insert(descriptor.mask);
    modifiers.insert(descriptor.score_modifier);
    tags.insert(descriptor.kv_layout_tag);
    query_layouts.insert(suite_case.prefill_case.query_layout);
  }
  CHECK(masks.size() == 13);
  CHECK(modifiers.size() == 5);
  CHECK(tags.size() == 5);
  CHECK(query_layouts.size() == 3);
}

TEST_CASE("lengths and offsets are given where a layout needs them, and only there") {
  std::vector<PrefillSuiteCase> suite;
  const auto has = [&](const PrefillCase& prefill_case, TensorView PrefillCall::*place) {
    const auto tensors = check::make_small_tensors(prefill_case);
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const auto& tensor) { return tensor.place == place; });
  };
  PrefillCase prefill_case =
      check::add_prefill_case(suite, "example", check::ragged_descriptor(4, 2, 64), {{3, 5}});
  CHECK(has(prefill_case, &PrefillCall::q_offsets));
  CHECK(has(prefill_case, &PrefillCall::kv_offsets));
  CHECK_FALSE(has(prefill_case, &PrefillCall::seq_lens));
  CHECK_FALSE(has(prefill_case, &PrefillCall::q_lens));
  prefill_case.unowned_rows = 2;
  CHECK(has(prefill_case, &PrefillCall::seq_lens));
  prefill_case.query_layout = check::QueryLayout::bhsd;
  CHECK_FALSE(has(prefill_case, &PrefillCall::q_offsets));
  CHECK(has(prefill_case, &PrefillCall::q_lens));
  prefill_case.unowned_rows = 0;
  CHECK_FALSE(has(prefill_case, &PrefillCall::q_lens));
  prefill_case.descriptor = check::paged_descriptor(4, 2, 64);
  CHECK(has(prefill_case, &PrefillCall::seq_lens));
  CHECK_FALSE(has(prefill_case, &PrefillCall::kv_offsets));
}

TEST_CASE("views of q and k count rows where their layout does, padding between them") {
  std::vector<PrefillSuiteCase> suite;
  PrefillCase prefill_case = check::add_prefill_case(
      suite, "example", check::ragged_descriptor(4, 2, 64), {{3, 5}, {2, 7}});
  prefill_case.row_padding = 8;
  const TensorView ragged = check::query_view(prefill_case, DataType::bf16, 64);
  CHECK(describe(ragged) == "bf16 [10, 4, 64], strides [264, 64, 1]");  // 2 before, 3 behind
  CHECK(check::span_bytes(ragged) == (10 * 264 - 8) * 2);
  CHECK(describe(check::key_view(prefill_case, 64)) == "bf16 [17, 2, 64], strides [136, 64, 1]");
  prefill_case.query_layout = check::QueryLayout::bhsd;
  CHECK(describe(check::query_view(prefill_case, DataType::bf16, 64)) ==
        "bf16 [2, 3, 4, 64], strides [864, 72, 216, 1]");
  prefill_case.descriptor.kv_layout = KvLayout::dense;
  prefill_case.descriptor.kv_layout_tag = KvLayoutTag::bhsd;
  CHECK(describe(check::key_view(prefill_case, 64)) ==
        "bf16 [2, 2, 7, 64], strides [1008, 504, 72, 1]");
  prefill_case.descriptor.kv_layout_tag = KvLayoutTag::bshd;
  CHECK(describe(check::key_view(prefill_case, 64)) ==
        "bf16 [2, 7, 2, 64], strides [952, 136, 64, 1]");
}

}  // namespace
}  // namespace attnjit
