// generator/README.md is the reference of the descriptor: it must know every field, value and rule.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/target_device.hpp"
#include "catch.hpp"
#include "field_perturbation.hpp"

namespace {

using namespace attnjit;
using Missing = std::vector<std::string>;

// Those of `texts` that the README does not hold.
Missing missing_of(const std::vector<std::string>& texts) {
  std::ifstream file(ATTNJIT_SOURCE_DIR "/generator/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Missing missing;
  for (const std::string& text : texts) {
    if (readme.find(text) == std::string::npos) {
      missing.push_back(text);
    }
  }
  return missing;
}

template <typename Enum>
void check_names() {
  std::vector<std::string> names;
  for (const std::string& name : test::names_of<Enum>()) {
    names.push_back("`" + name + "`");
  }
  CHECK(missing_of(names) == Missing{});
}

TEST_CASE("the README has a row for every field of the descriptor") {
  std::vector<std::string> rows;
  for (const std::string& name : test::field_names(AttentionDescriptor{})) {
    rows.push_back("\n| `" + name + "` | ");
  }
  CHECK(missing_of(rows) == Missing{});
}

TEST_CASE("the README has a row for every rule, word for word") {
  std::vector<std::string> rows;
  for (const auto table : {legality_rules(), support_rules()}) {
    for (const DescriptorRule& rule : table) {
      rows.push_back("\n| `" + std::string(rule.field) + "` | " + std::string(rule.rule) + " | " +
                     std::string(rule.fix) + " |\n");
    }
  }
  CHECK(missing_of(rows) == Missing{});
}

TEST_CASE("the README names every value of every enumeration a field takes") {
  check_names<Operation>();
  check_names<KvLayout>();
  check_names<KvLayoutTag>();
  check_names<ValueSource>();
  check_names<MaskKind>();
  check_names<ScoreModifier>();
  check_names<Sparsity>();
  check_names<ScaleGrain>();
}

TEST_CASE("the README lists every target device with its numbers") {
  std::vector<std::string> rows;
  for (const TargetDevice& device : target_device_presets()) {
    rows.push_back("\n| `" + device.name + "` | `" + device.arch + "` | " +
                   std::to_string(device.num_sms) + " | " +
                   std::to_string(device.shared_memory_per_block / 1024) + " | " +
                   std::to_string(device.l2_bytes / (1024 * 1024)) + " |\n");
  }
  CHECK(missing_of(rows) == Missing{});
}

}  // namespace
