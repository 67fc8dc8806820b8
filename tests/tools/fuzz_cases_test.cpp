// The random cases and descriptors of `attnjit check --fuzz`: the same for everyone, legal where
// they should be, small, and of everything that is served. What kernels make of the cases is the
// GPU's to say.
#include "fuzz_cases.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/mask_formula.hpp"
#include "attnjit/support_matrix.hpp"
#include "catch.hpp"
#include "fake_prefill_call.hpp"
#include "fuzz_descriptors.hpp"
#include "illegal_calls.hpp"
#include "illegal_descriptors.hpp"
#include "prefill_arguments.hpp"

namespace attnjit::check {
namespace {

constexpr std::uint64_t num_cases = 2000;
constexpr std::uint64_t seed = 1;

const AttentionDescriptor& descriptor_of(const FuzzCase& fuzz_case) {
  return std::visit([](const auto& each) -> const AttentionDescriptor& { return each.descriptor; },
                    fuzz_case);
}

std::string describe(const FuzzCase& fuzz_case) {
  return std::visit([](const auto& each) { return check::describe(each); }, fuzz_case);
}

// Everything that a case says.
std::string fingerprint(const FuzzCase& fuzz_case) {
  std::string text = to_json(descriptor_of(fuzz_case)) + describe(fuzz_case);
  const auto add = [&](const auto&... numbers) { ((text += " " + std::to_string(numbers)), ...); };
  if (const auto* decode = std::get_if<DecodeCase>(&fuzz_case)) {
    for (const int length : decode->seq_lens) {
      add(length);
    }
    add(decode->seed, decode->mask_shortage, decode->softmax_scale.value_or(7));
    return text;
  }
  const auto& prefill = std::get<PrefillCase>(fuzz_case);
  for (const std::vector<int>* values :
       {&prefill.q_lens, &prefill.kv_lens, &prefill.query_positions, &prefill.key_positions,
        &prefill.prefix_lens}) {
    for (const int value : *values) {
      add(value);
    }
  }
  add(prefill.seed, prefill.mask_shortage, prefill.block_shortage, prefill.unowned_rows,
      prefill.rows_before, prefill.row_padding, prefill.segment_tokens, prefill.softcap,
      prefill.softmax_scale.value_or(7));
  return text;
}

std::optional<std::string> refusal_by(const AttentionDescriptor& descriptor, const char* card) {
  try {
    select_configs(descriptor, find_target_device(card).value());
    return std::nullopt;
  } catch (const DescriptorError& error) {
    return error.what();
  }
}

TEST_CASE("a fuzzed case follows from its seed and index, and from nothing else") {
  for (const std::uint64_t index : std::vector<std::uint64_t>{0, 19, 20, 1234}) {
    const std::string first = fingerprint(make_fuzz_case(seed, index));
    CHECK(first == fingerprint(make_fuzz_case(seed, index)));
    CHECK(first != fingerprint(make_fuzz_case(seed + 1, index)));
    CHECK(first != fingerprint(make_fuzz_case(seed + (std::uint64_t{1} << 32), index)));
    CHECK(first != fingerprint(make_fuzz_case(seed, index + 1)));
  }
  CHECK(describe(make_illegal_descriptor(1, 2)) == describe(make_illegal_descriptor(1, 2)));
}

// With every standard library. Change these lines where what is drawn changes.
TEST_CASE("fuzzed cases are those that they were") {
  CHECK(describe(make_fuzz_case(1, 0)) ==
        "prefill_kvcache 192/128 h 12/3 bf16/bf16/fp16 causal custom | b 1 s_q 132 s_k 1013 | q "
        "bhsd k page "
        "83 hnd pool");
  CHECK(describe(make_fuzz_case(1, 40)) ==
        "gqa 256/256 h 24/8 fp16 page 128 hnd causal | b 5 s_q 33 s_k 0-4861 | "
        "per_request plan host");
  CHECK(describe(make_illegal_descriptor(1, 0)) == "chunk_size 1, scales_rope per_token");
}

TEST_CASE("every fuzzed case is legal and served, but for cards whose shared memory is too small") {
  for (const std::uint64_t other_seed : {seed, seed + 1, std::uint64_t{20261130}}) {
    for (std::uint64_t index = 0; index < num_cases; index += cases_per_descriptor) {
      const AttentionDescriptor descriptor = descriptor_of(make_fuzz_case(other_seed, index));
      INFO(other_seed << ", " << index << ": " << to_json(descriptor));
      CHECK_NOTHROW(validate(descriptor));
      CHECK(refusal_by(descriptor, "h200") == std::nullopt);
      const std::string on_a100 = refusal_by(descriptor, "a100").value_or("no tile fits");
      CHECK(on_a100.find("no tile fits") != std::string::npos);
    }
  }
}

TEST_CASE("2000 fuzzed cases meet every attention kernel of an H200") {
  std::set<std::string> kernels;
  for (std::uint64_t index = 0; index < num_cases; index += cases_per_descriptor) {
    const AttentionDescriptor descriptor = descriptor_of(make_fuzz_case(seed, index));
    const auto configs = select_configs(descriptor, find_target_device("h200").value());
    kernels.insert(std::string(kernel_name(configs.front())));
  }
  CHECK(kernels == std::set<std::string>{"paged_decode_sm80", "prefill_sm80", "seesaw_decode_sm90",
                                         "swapped_decode_sm90"});
}

TEST_CASE("consecutive fuzzed cases share a descriptor, and differ") {
  std::set<std::string> descriptors;
  std::set<std::string> cases;
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    descriptors.insert(to_json(descriptor_of(fuzz_case)));
    cases.insert(fingerprint(fuzz_case));
  }
  CHECK(descriptors.size() <= num_cases / cases_per_descriptor);
  CHECK(descriptors.size() >= 95);
  CHECK(cases.size() == num_cases);
}

struct Size {
  std::int64_t pairs = 0;
  std::int64_t query_tokens = 0;
  std::int64_t keys = 0;
};

Size size_of(const DecodeCase& decode_case) {
  Size size;
  for (const int keys : decode_case.seq_lens) {
    size.pairs += std::int64_t{keys} * decode_case.seqlen_q * decode_case.descriptor.num_q_heads;
    size.query_tokens += decode_case.seqlen_q;
    size.keys += keys;
  }
  return size;
}

Size size_of(const PrefillCase& prefill_case) {
  Size size;
  for (int b = 0; b < prefill_case.batch(); ++b) {
    size.pairs += std::int64_t{prefill_case.kv_len(b)} * prefill_case.q_len(b) *
                  prefill_case.descriptor.num_q_heads;
    size.query_tokens += prefill_case.q_len(b);
    size.keys += prefill_case.kv_len(b);
  }
  return size;
}

TEST_CASE("fuzzed cases are small") {
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    const AttentionDescriptor& descriptor = descriptor_of(fuzz_case);
    const Size size = std::visit([](const auto& each) { return size_of(each); }, fuzz_case);
    const int width = descriptor.head_dim_qk + descriptor.head_dim_v;
    INFO(index << ": " << describe(fuzz_case));
    CHECK(size.pairs <= most_fuzz_pairs);
    CHECK(size.query_tokens * descriptor.num_q_heads * width <= most_fuzz_query_elements);
    CHECK(size.keys * descriptor.num_kv_heads * width <= most_fuzz_key_elements);
  }
}

bool fits(const std::vector<int>& values, int batch) {
  return static_cast<int>(values.size()) == batch;
}

TEST_CASE("fuzzed decodes bring queries and masks that their descriptors allow") {
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    if (const auto* decode = std::get_if<DecodeCase>(&fuzz_case)) {
      INFO(index << ": " << describe(fuzz_case));
      CHECK(decode->seqlen_q >= 1);
      CHECK(decode->seqlen_q <= decode->descriptor.max_seqlen_q);
      CHECK(decode->batch() > 0);
      const int longest = *std::max_element(decode->seq_lens.begin(), decode->seq_lens.end());
      CHECK(decode->mask_shortage >= 0);
      CHECK(decode->mask_shortage < std::max(1, longest));
    }
  }
}

TEST_CASE("the call of every fuzzed prefill passes the checks of a call") {
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    if (const auto* prefill = std::get_if<PrefillCase>(&fuzz_case)) {
      INFO(index << ": " << describe(fuzz_case));
      const int batch = prefill->batch();
      CHECK(batch > 0);
      CHECK(fits(prefill->kv_lens, batch));
      CHECK((prefill->query_positions.empty() || fits(prefill->query_positions, batch)));
      CHECK((prefill->key_positions.empty() || fits(prefill->key_positions, batch)));
      CHECK(fits(prefill->prefix_lens, batch) ==
            has_mask(prefill->descriptor, MaskKind::prefix_lm));
      const PrefillCall call = fake_call(*prefill);
      CHECK_NOTHROW(check_prefill_call(prefill->descriptor, call));
      if (call.mask.data != nullptr) {
        CHECK(call.mask.shape[0] * call.mask.shape[1] * call.mask.shape[2] * call.mask.shape[3] <=
              most_fuzz_mask_elements);
      }
      const int most_queries = *std::max_element(prefill->q_lens.begin(), prefill->q_lens.end());
      CHECK((prefill->descriptor.max_seqlen_q == 0 ||
             most_queries <= prefill->descriptor.max_seqlen_q));
    }
  }
}

using Values = std::set<std::string>;  // "mask causal"

// Of the fields whose values are few.
void add_values(const AttentionDescriptor& descriptor, Values& values) {
  for_each_field(descriptor, [&](const char* name, const auto& member) {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>) {
      values.insert(std::string(name) + " " + std::string(to_string(member)));
    } else if constexpr (std::is_same_v<Member, bool>) {
      values.insert(std::string(name) + (member ? " yes" : " no"));
    }
  });
}

TEST_CASE("2000 fuzzed cases meet every enumerator that decode and prefill serve") {
  std::map<Operation, Values> drawn;
  std::map<Operation, Values> served;
  for (std::uint64_t index = 0; index < num_cases; index += cases_per_descriptor) {
    const AttentionDescriptor descriptor = descriptor_of(make_fuzz_case(seed, index));
    add_values(descriptor, drawn[descriptor.operation]);
  }
  const std::vector<TargetDevice> targets = {find_target_device("h200").value()};
  for (const ServedRow& row : make_support_matrix(targets).rows) {
    for (const ServedAxis& axis : row.axes) {
      for (const ProbedValue& value : axis.values) {
        add_values(value.call, served[row.operation]);
      }
    }
  }
  for (const Operation operation :
       {Operation::decode, Operation::prefill, Operation::prefill_kvcache}) {
    INFO(to_string(operation));
    CHECK(drawn[operation] == served[operation]);
  }
}

TEST_CASE("2000 fuzzed cases meet everything that a call may bring") {
  std::set<PlanSource> plans;
  std::set<CacheArrangement> arrangements;
  std::set<QueryLayout> layouts;
  std::set<BlockPattern> patterns;
  std::set<SinkSize> sinks;
  std::set<std::optional<double>> scales;
  std::set<int> lengths;
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    if (const auto* decode = std::get_if<DecodeCase>(&fuzz_case)) {
      plans.insert(decode->plan);
      arrangements.insert(decode->arrangement);
      lengths.insert(decode->seq_lens.begin(), decode->seq_lens.end());
      continue;
    }
    const auto& prefill = std::get<PrefillCase>(fuzz_case);
    layouts.insert(prefill.query_layout);
    patterns.insert(prefill.blocks);
    sinks.insert(prefill.sinks);
    scales.insert(prefill.softmax_scale);
  }
  CHECK(plans.size() == 3);
  CHECK(arrangements.size() == 3);
  CHECK(layouts.size() == 3);
  CHECK(patterns.size() == 3);
  CHECK(sinks.size() == 4);
  CHECK(scales.size() == 5);
  for (const int edge : {0, 1, 63, 64, 65, 127, 128, 129}) {
    CHECK(lengths.contains(edge));
  }
}

TEST_CASE("2000 illegal descriptors are refused, each by the name of what is wrong") {
  std::set<std::string> fields;
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const IllegalDescriptor illegal = make_illegal_descriptor(seed, index);
    INFO(index << ": " << describe(illegal) << " of " << to_json(illegal.descriptor));
    const CheckResult result = check_refusal(illegal);
    INFO(result.failure);
    CHECK(result.passed);
    fields.insert(illegal.fields.begin(), illegal.fields.end());
  }
  // All but has_sinks, returns_lse and batch_invariant, which cannot be wrong.
  CHECK(fields.size() == 34);
}

TEST_CASE("a legal descriptor called illegal, or one refused for something else, does not pass") {
  IllegalDescriptor illegal = {make_fuzz_descriptor(seed, 0), {"mask"}};
  CHECK(check_refusal(illegal).failure == "accepted");
  illegal.descriptor.num_q_heads = 0;
  const CheckResult result = check_refusal(illegal);
  CHECK_FALSE(result.passed);
  CHECK(result.failure.starts_with("refused without naming what was changed: num_q_heads = 0"));
}

TEST_CASE("2000 illegal calls are refused, each by the name of the argument that is wrong") {
  std::set<std::string> wrong;
  for (std::uint64_t index = 0; index < num_cases; ++index) {
    const IllegalCall illegal = make_illegal_call(seed, index);
    INFO(index << ": " << describe(illegal) << ", " << to_json(illegal.descriptor));
    const CheckResult result = check_refusal(illegal);
    INFO(result.failure);
    CHECK(result.passed);
    wrong.insert(illegal.argument);
  }
  CHECK(wrong.size() == 24);
}

TEST_CASE("a legal call called illegal, or one refused for something else, does not pass") {
  IllegalCall illegal = make_illegal_call(seed, 0);
  illegal.argument = "nothing";
  CHECK(check_refusal(illegal).failure.starts_with("refused without naming what was changed"));
  for (std::uint64_t index = 0;; ++index) {
    const FuzzCase fuzz_case = make_fuzz_case(seed, index);
    if (const auto* prefill = std::get_if<PrefillCase>(&fuzz_case)) {
      CHECK(check_refusal({prefill->descriptor, fake_call(*prefill), "q", ""}).failure ==
            "accepted");
      break;
    }
  }
}

}  // namespace
}  // namespace attnjit::check
