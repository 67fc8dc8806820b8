// How the keys of a prefill are shared out over a GPU, and what a split call wants. None of it
// needs a GPU.
#include <cstdint>
#include <limits>
#include <string>

#include "attnjit/config_selection.hpp"
#include "attnjit/prefill.hpp"
#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_calls.hpp"

namespace attnjit {
namespace {

using namespace test;

// What prepare_prefill makes, without kernels.
PreparedPrefill prepared(const PrefillCase& prefill) {
  PreparedPrefill kernel;
  kernel.descriptor = prefill.descriptor;
  kernel.target = find_target_device("h200").value();
  const auto configs = select_configs(prefill.descriptor, kernel.target);
  kernel.config = std::get<PrefillConfig>(configs[0]);
  kernel.combine_config = std::get<CombinePrefillConfig>(configs[1]);
  return kernel;
}

PrefillPlan plan_of(const PrefillCase& prefill) {
  return plan_prefill(prepared(prefill), prefill.call);
}

// `batch` requests of `tokens` query tokens each, over up to `pages` pages of 16 tokens.
PrefillCase paged_calls(std::int64_t batch, std::int64_t tokens, std::int64_t pages) {
  PrefillCase prefill = paged(KvLayoutTag::nhd);
  prefill.descriptor.max_seqlen_q = static_cast<int>(tokens);
  prefill.call.q = elements({batch * tokens, 8, 128}, 2);
  prefill.call.q_offsets = integers({batch + 1}, 3);
  prefill.call.out = elements({batch * tokens, 8, 64}, 4);
  prefill.call.lse = fp32_numbers({8, batch * tokens}, 5);
  prefill.call.block_table = integers({batch, pages}, 8);
  prefill.call.seq_lens = integers({batch}, 9);
  return prefill;
}

TEST_CASE("many query rows are not split") {
  const PrefillPlan plan = plan_of(paged_calls(8, 4096, 256));
  CHECK(plan.num_splits == 1);
  CHECK(plan.workspace_bytes == 0);
}

TEST_CASE("few query rows over many keys are split over the GPU, in at most 32 parts") {
  const PrefillPlan one = plan_of(paged_calls(1, 1, 2048));
  CHECK(one.num_splits == 32);
  // 2 row tiles (of 1 token and what its offset may need) times 2 kv heads for each request.
  const PrefillPlan some = plan_of(paged_calls(16, 1, 2048));
  CHECK(some.num_splits > 1);
  CHECK(some.num_splits < 32);
}

TEST_CASE("a part has some tiles of keys: few keys are split less, or not") {
  CHECK(plan_of(paged_calls(1, 1, 16)).num_splits == 1);
  const PrefillPlan plan = plan_of(paged_calls(1, 1, 100));  // 1600 keys
  CHECK(plan.num_splits == 6);
}

TEST_CASE("a workspace has room for fp32 outputs and the state of each row of each part") {
  const PrefillPlan plan = plan_of(paged_calls(1, 3, 2048));
  CHECK(plan.workspace_bytes == std::int64_t{plan.num_splits} * 3 * 8 * (64 * 4 + 8));
}

TEST_CASE(
    "ragged and dense keys count as their shapes say, and nothing is split that is not there") {
  PrefillCase dense_call = dense(KvLayoutTag::bshd);
  dense_call.descriptor.max_seqlen_q = 30;
  CHECK(plan_of(dense_call).num_splits == 1);  // 40 keys
  dense_call.call.k = elements({2, 40000, 2, 128}, 6);
  dense_call.call.v = elements({2, 40000, 2, 64}, 7);
  CHECK(plan_of(dense_call).num_splits > 1);
  PrefillCase ragged_call = ragged();
  ragged_call.call.k = elements({100000, 2, 128}, 6);
  ragged_call.call.v = elements({100000, 2, 64}, 7);
  CHECK(plan_of(ragged_call).num_splits > 1);
  ragged_call.call.q = elements({0, 8, 128}, 2);
  ragged_call.call.out = elements({0, 8, 64}, 4);
  ragged_call.call.lse = fp32_numbers({8, 0}, 5);
  CHECK(plan_of(ragged_call).num_splits == 1);
}

TEST_CASE("a window's keys are what a tile sees: they are not cut by the length of the table") {
  PrefillCase prefill = paged_calls(1, 1, 2048);
  prefill.descriptor.mask = MaskKind::sliding_window;
  prefill.descriptor.window_left = 127;
  prefill.descriptor.window_right = 0;
  CHECK(plan_of(prefill).num_splits == 1);
  prefill.descriptor.window_left = -1;
  prefill.descriptor.window_right = 3;
  CHECK(plan_of(prefill).num_splits > 1);
}

TEST_CASE("a batch-invariant prefill is never in parts, which would depend on the batch") {
  PrefillCase prefill = paged_calls(1, 1, 2048);
  prefill.descriptor.batch_invariant = true;
  CHECK(plan_of(prefill).num_splits == 1);
  try {
    run_prefill(prepared(prefill), prefill.call, {2, 0}, fake_pointer(20), 1 << 30, nullptr);
    FAIL("two parts were accepted");
  } catch (const ArgumentError& error) {
    CHECK(std::string(error.what()).find("plan.num_splits = 2: must be 1") != std::string::npos);
  }
}

TEST_CASE("a plan is refused for a call that is wrong") {
  PrefillCase prefill = paged_calls(1, 1, 100);
  prefill.call.seq_lens = {};
  CHECK_THROWS_AS(plan_of(prefill), ArgumentError);
}

std::string refusal_of(const PrefillCase& prefill, const PrefillPlan& plan, void* workspace,
                       std::int64_t workspace_bytes) {
  try {
    run_prefill(prepared(prefill), prefill.call, plan, workspace, workspace_bytes, nullptr);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a split call without its workspace is refused before anything is launched") {
  const PrefillCase prefill = paged_calls(1, 1, 2048);
  const PrefillPlan plan = plan_of(prefill);
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refusal_of(prefill, plan, nullptr, plan.workspace_bytes), "workspace = null"));
  const std::string small = refusal_of(prefill, plan, fake_pointer(20), plan.workspace_bytes - 1);
  CHECK(has(small, "workspace_bytes"));
  CHECK(has(small, std::to_string(plan.workspace_bytes).c_str()));
  void* odd = static_cast<char*>(fake_pointer(20)) + 8;
  CHECK(has(refusal_of(prefill, plan, odd, plan.workspace_bytes), "16-byte aligned"));
  for (const int parts : {0, -1, 33}) {
    CHECK(has(refusal_of(prefill, {parts, 0}, fake_pointer(20), 1 << 30), "plan.num_splits"));
  }
}

TEST_CASE("more blocks of the second kernel than a grid has are refused") {
  // 2^24 requests of one token: 2^25 row tiles at most, in 16 or more groups of rows each.
  PrefillCase prefill = paged_calls(std::int64_t{1} << 28, 1, 1);
  const std::string refusal =
      refusal_of(prefill, {2, 0}, fake_pointer(20), std::numeric_limits<std::int64_t>::max());
  CHECK(refusal.find("must be 1 for so many query rows") != std::string::npos);
}

}  // namespace
}  // namespace attnjit
