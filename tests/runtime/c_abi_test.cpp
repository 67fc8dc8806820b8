// The C interface as a program sees it that links libattnjit.so alone, on a driver without a GPU:
// each operation from its descriptor to its launches.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "cache/scratch_directory.hpp"
#include "catch.hpp"
#include "interface/append_kv_cache_arguments.h"
#include "interface/merge_states_arguments.h"
#include "interface/prefill_arguments.h"
#include "interface/sparse_mla_arguments.h"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::test;
using namespace attnjit::kernel_interface;

namespace {

using Names = std::vector<std::string>;

void* sample_stream() {
  return reinterpret_cast<void*>(std::uintptr_t{0x77});
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("c abi: a descriptor becomes kernels, a plan and launches on the caller's stream") {
  CAbiSession session;
  const attnjit_plan plan = session.make_plan(mla_decode, 2);
  CHECK(session.mock.loaded_cubins.size() == 3);
  std::int64_t bytes = 0;
  REQUIRE(attnjit_plan_workspace_bytes(plan, &bytes) == ATTNJIT_OK);
  CHECK(bytes > 0);
  const auto* seq_lens = static_cast<const int*>(device_address(50));
  REQUIRE(attnjit_plan_update(plan, seq_lens, 2, sample_stream()) == ATTNJIT_OK);
  const RightCall<attnjit_decode_call> right = right_mla_decode(session);
  session.mock.launches.clear();
  REQUIRE(attnjit_decode(plan, &right.call, device_address(51), bytes, sample_stream()) ==
          ATTNJIT_OK);
  REQUIRE(session.mock.launches.size() == 2);
  for (const Launch& launch : session.mock.launches) {
    CHECK(launch.config.hStream == sample_stream());
  }
  const auto attention = arguments_of<SwappedDecodeArguments>(session.mock.launches[0]).call;
  CHECK(attention.q == right.call.q.data);
  CHECK(attention.k_cache == right.call.k_cache.data);
  CHECK(attention.block_table == right.call.block_table.data);
  CHECK(attention.seq_lens == right.call.seq_lens.data);
  CHECK(attention.partial.out == device_address(51));
  const auto combine = arguments_of<CombineArguments>(session.mock.launches[1]);
  CHECK(combine.out == right.call.out.data);
  CHECK(combine.lse == right.call.lse.data);
  CHECK(combine.batch == 2);
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  CHECK(release(right) == ATTNJIT_OK);
  CHECK(session.mock.allocations.empty());
}

TEST_CASE("c abi: every operation launches its kernels") {
  CAbiSession session;
  const std::vector<Names> expected = {{"swapped_decode_sm90", "combine_splits"},
                                       {"paged_decode_sm80", "combine_splits"},
                                       {"prefill_sm80"},
                                       {"prefill_sm80"},
                                       {"prefill_sm80"},
                                       {"sparse_mla_sm80"},
                                       {"sparse_mla_sm80"},
                                       {"append_kv_cache"},
                                       {"merge_states"}};
  std::size_t i = 0;
  for_each_right_call(session, [&](const auto& right) {
    const attnjit_status status = right(right.call);
    INFO(right.operation << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_OK);
    CHECK(names_all_tensors(right));
    CHECK(session.take_launched_kernels() == expected.at(i++));
    CHECK(release(right) == ATTNJIT_OK);
  });
  CHECK(i == expected.size());
}

TEST_CASE("c abi: tensors reach the kernels of prefill, sparse attention, append and merge") {
  CAbiSession session;
  const auto prefill = right_rope_prefill(session);
  const auto sparse = right_sparse_prefill(session);
  const auto append = right_append(session);
  const auto merge = right_merge(session);
  REQUIRE((prefill(prefill.call) | sparse(sparse.call) | append(append.call) | merge(merge.call)) ==
          ATTNJIT_OK);
  REQUIRE(session.mock.launches.size() == 4);
  const auto prefilled = arguments_of<PrefillArguments>(session.mock.launches[0]);
  CHECK(prefilled.k == prefill.call.k.data);
  constexpr std::size_t latent_bytes = 512 * 2;  // of a row, before its rope
  CHECK(prefilled.k_rope == static_cast<const std::byte*>(prefill.call.k_rope.data) + latent_bytes);
  CHECK(prefilled.query_positions == prefill.call.query_positions.data);
  CHECK(prefilled.k_strides.row == 4 * 128);
  const auto attended = arguments_of<SparseMlaArguments>(session.mock.launches[1]);
  CHECK(attended.indices[0].indices == sparse.call.indices.data);
  CHECK(attended.max_logits == sparse.call.max_logits.data);
  const auto appended = arguments_of<AppendKvCacheArguments>(session.mock.launches[2]);
  CHECK(appended.v.cache == append.call.v_cache.data);
  CHECK(appended.places.num_tokens == 5);
  const auto merged = arguments_of<MergeStatesArguments>(session.mock.launches[3]);
  CHECK(merged.num_partials == 2);
  CHECK(merged.partials[1].out == merge.call.partials[1].out.data);
}

TEST_CASE("c abi: a softmax scale of 0 is 1 / sqrt(head_dim_qk), another is the caller's") {
  CAbiSession session;
  auto decode = right_mla_decode(session);
  auto prefill = right_ragged_prefill(session);
  auto sparse = right_sparse_decode(session);
  for (const float given : {0.0F, 0.5F}) {
    decode.call.softmax_scale = prefill.call.softmax_scale = sparse.call.softmax_scale = given;
    session.mock.launches.clear();
    REQUIRE((decode(decode.call) | prefill(prefill.call) | sparse(sparse.call)) == ATTNJIT_OK);
    const auto of = [&](double head_dim) {
      return given != 0.0F ? given : static_cast<float>(1.0 / std::sqrt(head_dim));
    };
    const auto& launches = session.mock.launches;
    CHECK(arguments_of<SwappedDecodeArguments>(launches.at(0)).call.softmax_scale ==
          Approx(of(576)));
    CHECK(arguments_of<PrefillArguments>(launches.at(2)).softmax_scale == Approx(of(128)));
    CHECK(arguments_of<SparseMlaArguments>(launches.at(3)).softmax_scale == Approx(of(576)));
  }
  decode.call.softmax_scale = nan_value;
  CHECK(decode(decode.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"softmax_scale"});
}

TEST_CASE("c abi: a plan from lengths in device memory is made by a kernel") {
  CAbiSession session;
  const attnjit_plan plan = session.make_plan(mla_decode, 4);
  const auto* seq_lens = static_cast<const int*>(device_address(0));
  REQUIRE(attnjit_plan_update(plan, seq_lens, 3, sample_stream()) == ATTNJIT_OK);
  REQUIRE(session.mock.launches.size() == 1);
  CHECK(session.mock.launches[0].kernel == "schedule_decode");
  const auto schedule = arguments_of<ScheduleArguments>(session.mock.launches[0]);
  CHECK(schedule.seq_lens == seq_lens);
  CHECK(schedule.batch == 3);
  CHECK(attnjit_plan_update(plan, seq_lens, 5, nullptr) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"batch"});
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
}

TEST_CASE("c abi: a plan from lengths on the host is made without a launch, outside of captures") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  const int seq_lens[] = {40, 30};
  REQUIRE(attnjit_plan_update_from_host(right.handle, seq_lens, 2, nullptr) == ATTNJIT_OK);
  CHECK(session.mock.launches.empty());
  CHECK(right(right.call) == ATTNJIT_OK);  // short requests are not split: nothing to combine
  CHECK(session.take_launched_kernels() == Names{"swapped_decode_sm90"});
  session.mock.is_capturing = true;
  CHECK(attnjit_plan_update_from_host(right.handle, seq_lens, 2, sample_stream()) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"stream"});
  session.mock.is_capturing = false;
  for (const std::int32_t batch : {0, -1}) {
    CHECK(attnjit_plan_update_from_host(right.handle, seq_lens, batch, nullptr) ==
          ATTNJIT_INVALID_CALL);
  }
  CHECK(release(right) == ATTNJIT_OK);
}

TEST_CASE("c abi: a plan that was never updated is not run") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  const attnjit_plan plan = session.make_plan(mla_decode, 2);
  CHECK(right.run(plan, &right.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"batch"});
}

TEST_CASE("c abi: plan options are checked by their names") {
  CAbiSession session;
  const attnjit_kernel kernel = session.prepare(mla_decode);
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.seqlen_q = 2;  // the descriptor has max_seqlen_q 1
  attnjit_plan plan = 77;
  CHECK(attnjit_plan_create(kernel, &options, &plan) == ATTNJIT_INVALID_CALL);
  CHECK(plan == 0);
  CHECK(violated_fields() == Names{"seqlen_q", "max_batch"});
}

TEST_CASE("c abi: a decode whose workspace is too small or absent is refused") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  std::int64_t bytes = 0;
  REQUIRE(attnjit_plan_workspace_bytes(right.handle, &bytes) == ATTNJIT_OK);
  CHECK(attnjit_decode(right.handle, &right.call, device_address(9), bytes - 1, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace"});
  CHECK(attnjit_decode(right.handle, &right.call, nullptr, bytes, nullptr) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace"});
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: a prefill of few query rows is split, and its parts are combined") {
  CAbiSession session;
  auto right = right_ragged_prefill(session);
  right.call.k = device_tensor(1, ATTNJIT_BF16, {60000, 2, 128});
  right.call.v = device_tensor(2, ATTNJIT_BF16, {60000, 2, 128});
  attnjit_prefill_split split = {};
  split.struct_size = sizeof split;
  REQUIRE(attnjit_prefill_plan(right.handle, &right.call, &split) == ATTNJIT_OK);
  CHECK(split.num_splits > 1);
  CHECK(split.workspace_bytes == split.num_splits * std::int64_t{20 * 8} * (128 * 4 + 8));
  CHECK(session.mock.launches.empty());
  const auto run = [&](void* workspace, std::int64_t bytes) {
    return attnjit_prefill(right.handle, &right.call, &split, workspace, bytes, nullptr);
  };
  CHECK(run(device_address(9), split.workspace_bytes) == ATTNJIT_OK);
  CHECK(arguments_of<PrefillArguments>(session.mock.launches.at(0)).num_splits == split.num_splits);
  CHECK(session.take_launched_kernels() == Names{"prefill_sm80", "combine_prefill"});
  CHECK(run(nullptr, split.workspace_bytes) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace"});
  CHECK(run(device_address(9), split.workspace_bytes - 1) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace_bytes"});
  for (const std::int32_t splits : {0, -5, 33, std::numeric_limits<std::int32_t>::max(),
                                    std::numeric_limits<std::int32_t>::min()}) {
    split.num_splits = splits;
    CHECK(run(device_address(9), split.workspace_bytes) == ATTNJIT_INVALID_CALL);
    CHECK(violated_fields() == Names{"plan.num_splits"});
  }
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: a launch that the driver refuses is its error, and the next one may succeed") {
  CAbiSession session;
  const auto right = right_append(session);
  session.mock.launch_result = CUDA_ERROR_INVALID_VALUE;
  CHECK(right(right.call) == ATTNJIT_CUDA_FAILED);
  CHECK(last_message_has("cuLaunchKernelEx of kernel append_kv_cache on device 0"));
  session.mock.launch_result = CUDA_SUCCESS;
  CHECK(right(right.call) == ATTNJIT_OK);
}

TEST_CASE("c abi: kernels are made for the device that the runtime was made for") {
  CAbiSession session([](attnjit_runtime_options& options) { options.device = 1; });
  const auto right = right_append(session);
  CHECK(right(right.call) == ATTNJIT_OK);
  REQUIRE(session.mock.set_attributes.size() == 1);
  CHECK(session.mock.set_attributes[0].device == 1);
  CAbiSession absent([](attnjit_runtime_options& options) { options.device = 2; });
  attnjit_kernel kernel = 0;
  CHECK(attnjit_prepare(absent.runtime, append_to_cache, nullptr, &kernel) ==
        ATTNJIT_INVALID_ARGUMENT);
  CHECK(last_message_has("options->device = 2"));
}
