// The random façade calls of `attnjit check --fuzz`: served, of every kind, few kernels for many.
#include "fuzz_calls.hpp"

#include <map>
#include <set>
#include <string>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "fuzz_cases.hpp"

namespace attnjit::contract {
namespace {

TEST_CASE("every fuzzed façade call is served on the cards that the checks run on") {
  for (std::uint64_t index = 0; index < 2000; ++index) {
    const FuzzCall call = make_fuzz_call(7, index);
    INFO(describe(call));
    for (const AttentionDescriptor& descriptor : as_case(call).kernels) {
      CHECK_NOTHROW(validate(descriptor));
      CHECK_NOTHROW(select_configs(descriptor, find_target_device("h200").value()));
    }
    for (int b = 0; b < call.problem.batch(); ++b) {
      CHECK(call.problem.q_len(b) <= call.problem.kv_len(b));
    }
    CHECK(call.problem.q_len(0) > 0);
  }
}

TEST_CASE("fuzzed façade calls are of every kind and form") {
  std::map<std::string, int> kinds;
  std::set<int> page_sizes;
  std::set<MaskKind> masks;
  for (std::uint64_t index = 0; index < 4000; ++index) {
    const FuzzCall call = make_fuzz_call(3, index);
    ++kinds[std::string(to_string(call.kind))];
    if (call.kind == FuzzCallKind::flare) {
      page_sizes.insert(call.rope.page_size);
      masks.insert(call.problem.descriptor.mask);
    }
  }
  CHECK(kinds.size() == 4);
  for (const auto& [kind, count] : kinds) {
    INFO(kind);
    CHECK(count > 400);
  }
  CHECK(page_sizes.size() == 7);
  CHECK(masks.size() == 4);
}

TEST_CASE("consecutive façade calls share their kernels, and are the same each time") {
  std::set<std::string> descriptors;
  for (std::uint64_t index = 0; index < check::cases_per_descriptor; ++index) {
    const FuzzCall call = make_fuzz_call(5, index);
    descriptors.insert(to_json(call.problem.descriptor));
    CHECK(describe(make_fuzz_call(5, index)) == describe(call));
    CHECK(make_fuzz_call(5, index).problem.seed == call.problem.seed);
  }
  CHECK(descriptors.size() == 1);
}

TEST_CASE("a dense rope has as many keys of each request") {
  for (std::uint64_t index = 0; index < 2000; ++index) {
    const FuzzCall call = make_fuzz_call(11, index);
    const bool is_flare =
        call.kind == FuzzCallKind::flare || call.kind == FuzzCallKind::flare_chunks;
    if (is_flare && call.rope.page_size == 0) {
      const std::set<int> keys(call.problem.kv_lens.begin(), call.problem.kv_lens.end());
      CHECK(keys.size() == 1);
    }
  }
}

}  // namespace
}  // namespace attnjit::contract
