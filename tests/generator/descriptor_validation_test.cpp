#include "attnjit/descriptor_validation.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "attnjit/descriptor_json.hpp"
#include "catch.hpp"
#include "field_perturbation.hpp"

namespace {

using namespace attnjit;

// A line of invalid_descriptors.json: `change` to the default descriptor breaks one rule.
struct InvalidDescriptor {
  std::string name;
  AttentionDescriptor descriptor;
  std::string field;
  std::string rule;  // a part of the rule's text
};

std::vector<InvalidDescriptor> invalid_descriptors() {
  std::ifstream file(ATTNJIT_SOURCE_DIR "/tests/generator/invalid_descriptors.json");
  std::vector<InvalidDescriptor> cases;
  for (const auto& line : nlohmann::json::parse(file)) {
    cases.push_back({line.at("name"), descriptor_from_json(line.at("change").dump()),
                     line.at("field"), line.at("rule")});
  }
  return cases;
}

std::vector<DescriptorRule> all_rules() {
  std::vector<DescriptorRule> rules;
  for (const auto table : {legality_rules(), support_rules()}) {
    rules.insert(rules.end(), table.begin(), table.end());
  }
  return rules;
}

std::vector<Violation> violations_of(const AttentionDescriptor& descriptor) {
  try {
    validate(descriptor);
  } catch (const DescriptorError& error) {
    return error.violations();
  }
  return {};
}

std::string message_of(const AttentionDescriptor& descriptor) {
  try {
    validate(descriptor);
  } catch (const DescriptorError& error) {
    return error.what();
  }
  return "";
}

using Problems = std::vector<std::string>;

TEST_CASE("each invalid descriptor breaks the rule it names and no other") {
  Problems problems;
  for (const InvalidDescriptor& invalid : invalid_descriptors()) {
    const std::vector<Violation> violations = violations_of(invalid.descriptor);
    if (violations.size() != 1 || violations[0].field != invalid.field ||
        violations[0].rule.find(invalid.rule) == std::string::npos) {
      problems.push_back(invalid.name + " got: " + message_of(invalid.descriptor));
    }
  }
  CHECK(problems == Problems{});
}

TEST_CASE("every rule is broken alone by some invalid descriptor") {
  const std::vector<InvalidDescriptor> cases = invalid_descriptors();
  Problems untested;
  for (const DescriptorRule& rule : all_rules()) {
    const bool tested = std::any_of(cases.begin(), cases.end(), [&](const auto& invalid) {
      const std::vector<Violation> violations = violations_of(invalid.descriptor);
      return violations.size() == 1 && violations[0].field == rule.field &&
             (rule.find_fault == nullptr
                  ? violations[0].rule == rule.rule
                  : violations[0].rule.starts_with(std::string(rule.rule) + " ("));
    });
    if (!tested) {
      untested.push_back(std::string(rule.field) + ": " + std::string(rule.rule));
    }
  }
  CHECK(untested == Problems{});
}

TEST_CASE("no two invalid descriptors share a name or a descriptor") {
  const std::vector<InvalidDescriptor> cases = invalid_descriptors();
  Problems repeated;
  for (auto first = cases.begin(); first != cases.end(); ++first) {
    for (auto second = first + 1; second != cases.end(); ++second) {
      if (first->name == second->name || first->descriptor == second->descriptor) {
        repeated.push_back(first->name + " and " + second->name);
      }
    }
  }
  CHECK(repeated == Problems{});
}

TEST_CASE("the default descriptor breaks no rule") {
  CHECK(message_of(AttentionDescriptor{}) == "");
}

TEST_CASE("every rule is about a field of the descriptor and says what to do") {
  const std::vector<std::string> fields = test::field_names(AttentionDescriptor{});
  for (const DescriptorRule& rule : all_rules()) {
    CHECK(std::find(fields.begin(), fields.end(), rule.field) != fields.end());
    CHECK(!rule.rule.empty());
    CHECK(!rule.fix.empty());
  }
}

TEST_CASE("no two rules read alike, so that a message says which rule was broken") {
  const std::vector<DescriptorRule> rules = all_rules();
  for (auto first = rules.begin(); first != rules.end(); ++first) {
    CHECK(std::none_of(first + 1, rules.end(), [&](const DescriptorRule& second) {
      return first->field == second.field && first->rule == second.rule;
    }));
  }
}

TEST_CASE("a value that no enumerator names is refused in every field") {
  for (const std::string& name : test::field_names(AttentionDescriptor{})) {
    for (const int value : {99, -1}) {
      AttentionDescriptor descriptor;
      bool is_enum = false;
      for_each_field(descriptor, [&](std::string_view field, auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_enum_v<Member>) {
          if (field == name) {
            is_enum = true;
            member = static_cast<Member>(value);
          }
        }
      });
      const std::string expected =
          name + " = " + std::to_string(value) + ": must be one of its enumerators, ";
      CHECK(message_of(descriptor).starts_with(is_enum ? expected : ""));
    }
  }
}

TEST_CASE("all broken rules are listed, one a line, in the order of the rules") {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = 100;
  descriptor.page_size = 300;
  descriptor.topk = 5;
  CHECK(message_of(descriptor) ==
        "head_dim_qk = 100: must be a multiple of 8 up to 256, or 512; up to 576 if v is a prefix "
        "of k; fix: pad the heads with zeros to the next multiple of 8\n"
        "page_size = 300: must be between 1 and 256 if kv_layout is paged; any positive number for "
        "sparse_mla_decode; fix: re-page the cache, or view a larger page as several\n"
        "topk = 5: must not be negative, and 0 unless sparsity is token; fix: give the keys per "
        "query, or remove topk");
}

TEST_CASE("what is not served is listed only for a legal descriptor") {
  AttentionDescriptor descriptor;
  descriptor.sparsity = Sparsity::block;
  descriptor.sparsity_block = 64;
  descriptor.score_modifier = ScoreModifier::softcap;
  CHECK(violations_of(descriptor).size() == 2);
  CHECK(message_of(descriptor)
            .starts_with("score_modifier = softcap: only none is served by decode; fix: "));
  descriptor.topk = 5;
  CHECK(violations_of(descriptor).size() == 1);
  CHECK(violations_of(descriptor)[0].field == "topk");
}

TEST_CASE("a violation names the value as JSON would, and omits it where there is none") {
  CHECK(to_string(Violation{"sparsity", "block", "only none is served", "use a mask"}) ==
        "sparsity = block: only none is served; fix: use a mask");
  CHECK(to_string(Violation{"topk", "", "is given more than once", "give each field once"}) ==
        "topk: is given more than once; fix: give each field once");
  AttentionDescriptor descriptor;
  descriptor.mask = MaskKind::tree;
  CHECK(violations_of(descriptor)[0].value == "tree");
}

TEST_CASE("the head dims of the models that are out there are legal") {
  for (const int dim : {64, 72, 80, 96, 112, 128, 256, 512}) {
    AttentionDescriptor descriptor;
    descriptor.head_dim_qk = descriptor.head_dim_v = dim;
    CHECK(message_of(descriptor) == "");
  }
  for (const auto& [qk, v] : {std::pair(192, 128), {96, 64}, {576, 512}, {320, 256}}) {
    AttentionDescriptor descriptor;
    descriptor.head_dim_qk = qk;
    descriptor.head_dim_v = v;
    descriptor.value_source = qk > 256 ? ValueSource::prefix_of_k : ValueSource::separate;
    CHECK(message_of(descriptor) == "");
  }
}

TEST_CASE("extreme numbers in every field are judged without overflow") {
  const AttentionDescriptor original;
  for (const std::string& name : test::field_names(original)) {
    for (const int extreme :
         {std::numeric_limits<int>::min(), -1, 0, 1, std::numeric_limits<int>::max()}) {
      AttentionDescriptor descriptor = original;
      for_each_field(descriptor, [&](std::string_view field, auto& member) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, int>) {
          member = field == name ? extreme : member;
        }
      });
      find_violations(descriptor, legality_rules());
      find_violations(descriptor, support_rules());
    }
  }
  AttentionDescriptor descriptor;
  descriptor.num_q_heads = descriptor.num_kv_heads = std::numeric_limits<int>::min();
  CHECK(descriptor.q_per_kv() == 0);
  CHECK(violations_of(descriptor).size() == 2);
}

}  // namespace
TEST_CASE("a formula that cannot be read is told alone, without rules of its masks' fields") {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill_kvcache;
  descriptor.max_seqlen_q = 0;
  descriptor.mask = MaskKind::composed;
  descriptor.mask_formula = "chunked andd sliding_window";
  descriptor.window_left = 100;
  descriptor.chunk_size = 64;
  descriptor.mask_expression = "q > k";
  REQUIRE(violations_of(descriptor).size() == 1);
  CHECK(violations_of(descriptor)[0].field == "mask_formula");
  descriptor.head_dim_qk = 7;  // wrong whatever the formula says
  CHECK(violations_of(descriptor).size() == 2);
  descriptor.head_dim_qk = 128;
  descriptor.mask = static_cast<MaskKind>(99);
  descriptor.mask_formula = "";
  REQUIRE(violations_of(descriptor).size() == 1);
  CHECK(violations_of(descriptor)[0].field == "mask");
}
