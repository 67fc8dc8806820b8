// Plans and runs inside CUDA graphs: replays follow the lengths in device memory; a cold kernel is
// an error that leaves the capture valid.
#include <vector>

#include "catch.hpp"
#include "check_kernels.hpp"
#include "decode_problem.hpp"
#include "decode_suite.hpp"
#include "gpu_runtime.hpp"
#include "reference_comparison.hpp"

namespace attnjit {
namespace {

using check::CheckKernels;
using check::DecodeCase;
using check::DecodeProblem;

DecodeCase example_case(std::vector<int> seq_lens) {
  DecodeCase decode_case;
  decode_case.descriptor = check::mla_descriptor(16, 1);
  decode_case.seq_lens = std::move(seq_lens);
  return decode_case;
}

TEST_CASE("a captured plan and run follow the lengths in device memory") {
  const DeviceStream stream(0);
  const CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  DecodeProblem problem(kernels, example_case({5000, 64, 5, 700}), stream, 1);
  DecodePlan plan(gpu_runtime().prepare_decode(problem.decode_case().descriptor, 0), 4, 1);
  const DeviceBuffer workspace(0, static_cast<std::size_t>(plan.workspace_bytes()));
  const DeviceGraph graph(stream, [&] {
    plan.update(problem.device_seq_lens(), 4, stream.handle());
    run_decode(plan, problem.call(), workspace.data(), plan.workspace_bytes(), stream.handle());
  });
  for (const std::vector<int>& lengths :
       {std::vector<int>{5000, 64, 0, 700}, {1, 1, 1, 1}, {4999, 0, 5, 3}, {0, 0, 0, 0}}) {
    problem.replace_lengths(lengths, stream);
    problem.poison_outputs(stream);
    graph.launch(stream);
    const check::Comparison comparison = compare_with_reference(kernels, problem, stream, {});
    CHECK(comparison.mismatches == 0);
    CHECK(comparison.worst_excess < 1);
    CHECK(comparison.worst_lse_excess < 1);
  }
}

TEST_CASE("a cold kernel during capture is an error and the capture stays valid") {
  const DeviceStream stream(0);
  AttentionRuntime cold;
  const AttentionDescriptor descriptor = check::mla_descriptor(16, 1);
  DeviceBuffer buffer(0, 64);
  bool is_refused = false;
  const DeviceGraph graph(stream, [&] {
    try {
      cold.prepare_decode(descriptor, 0, stream.handle());
    } catch (const ColdKernelError&) {
      is_refused = true;
    }
    buffer.fill(7, stream.handle());
  });
  CHECK(is_refused);
  graph.launch(stream);
  CHECK(download_values<unsigned char>(buffer, 64, stream.handle()) ==
        std::vector<unsigned char>(64, 7));
  CHECK(cold.find_decode(descriptor, 0) == nullptr);
  CHECK(cold.prepare_decode(descriptor, 0, stream.handle()) != nullptr);
  CHECK(cold.find_decode(descriptor, 0) != nullptr);
}

TEST_CASE("a plan from host lengths is refused during capture") {
  const DeviceStream stream(0);
  DecodePlan plan(gpu_runtime().prepare_decode(check::mla_descriptor(16, 1), 0), 1, 1);
  bool is_refused = false;
  const DeviceGraph graph(stream, [&] {
    try {
      plan.update(std::vector<int>{100}, stream.handle());
    } catch (const ArgumentError&) {
      is_refused = true;
    }
  });
  CHECK(is_refused);
}

TEST_CASE("plans refuse batches, query tokens and workspaces that do not fit") {
  const DeviceStream stream(0);
  const auto kernels = gpu_runtime().prepare_decode(check::mla_descriptor(16, 2), 0);
  CHECK_THROWS_AS(DecodePlan(kernels, 0, 1), ArgumentError);
  CHECK_THROWS_AS(DecodePlan(kernels, 1, 3), ArgumentError);
  CHECK_THROWS_AS(DecodePlan(kernels, 1, 0), ArgumentError);
  const CheckKernels check_kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  const DecodeProblem problem(check_kernels, example_case({100}), stream, 1);
  DecodePlan plan(gpu_runtime().prepare_decode(problem.decode_case().descriptor, 0), 1, 1);
  const DeviceBuffer workspace(0, static_cast<std::size_t>(plan.workspace_bytes()));
  const auto run = [&](void* memory, std::int64_t bytes) {
    run_decode(plan, problem.call(), memory, bytes, stream.handle());
  };
  CHECK_THROWS_AS(run(workspace.data(), plan.workspace_bytes()), ArgumentError);  // no update yet
  CHECK_THROWS_AS(plan.update(std::vector<int>{1, 2}, stream.handle()), ArgumentError);
  plan.update(std::vector<int>{100}, stream.handle());
  CHECK_THROWS_AS(run(nullptr, plan.workspace_bytes()), ArgumentError);
  CHECK_THROWS_AS(run(workspace.data(), plan.workspace_bytes() - 1), ArgumentError);
  CHECK_NOTHROW(run(workspace.data(), plan.workspace_bytes()));
  stream.synchronize();
}

}  // namespace
}  // namespace attnjit
