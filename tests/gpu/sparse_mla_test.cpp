// Token-sparse attention on the GPU against the fp64 reference: the whole suite of `attnjit check`,
// proof that the check can fail, and calls in parts and in graphs.
#include "attnjit/sparse_mla.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "attnjit/merge_states.hpp"
#include "catch.hpp"
#include "check_kernels.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"
#include "sparse_mla_checker.hpp"
#include "sparse_mla_problem.hpp"
#include "sparse_mla_suite.hpp"

namespace attnjit {
namespace {

using check::CheckResult;
using check::SparseMlaCase;
using check::SparseMlaProblem;

TEST_CASE("every case of the token-sparse suite agrees with the fp64 reference") {
  check::SparseMlaChecker checker(gpu_runtime(), 0);
  for (const check::SparseMlaSuiteCase& suite_case : check::sparse_mla_suite()) {
    const CheckResult result = checker.check(suite_case.sparse_case);
    INFO(suite_case.group << ": " << describe(suite_case.sparse_case) << ": " << result.failure);
    CHECK(result.passed);
  }
}

SparseMlaCase example_case(KvEncoding encoding) {
  SparseMlaCase sparse_case;
  sparse_case.descriptor =
      sparse_mla_decode_descriptor({.num_q_heads = 20,
                                    .head_dim_qk = encoding == KvEncoding::fp8_584 ? 512 : 576,
                                    .kv_encoding = encoding});
  sparse_case.batch = 3;
  sparse_case.seqlen_q = 2;
  sparse_case.pool = {.topk = 200, .num_tokens = 300, .page_size = 64};
  return sparse_case;
}

class Runner {
 public:
  SparseMlaProblem make_problem(const SparseMlaCase& sparse_case) const {
    SparseMlaProblem problem(kernels_, sparse_case, stream_, 0xff);
    problem.poison_outputs(stream_);
    return problem;
  }

  std::vector<unsigned char> run(SparseMlaProblem& problem, const SparseMlaCall& call) const {
    problem.poison_outputs(stream_);
    run_sparse_mla(kernel(problem), call, stream_.handle());
    return problem.download_outputs(stream_);
  }

  const PreparedSparseMla& kernel(const SparseMlaProblem& problem) const {
    return *gpu_runtime().prepare_sparse_mla(problem.sparse_case().descriptor, 0);
  }

  const DeviceStream& stream() const { return stream_; }

 private:
  DeviceStream stream_{0};
  check::CheckKernels kernels_ = check::load_check_kernels(gpu_runtime().provider(), 0);
};

TEST_CASE("another index of a list changes a token-sparse result, an invalid one behind it not") {
  const Runner runner;
  SparseMlaCase sparse_case = example_case(KvEncoding::plain);
  sparse_case.pool.pattern = check::IndexPattern::distinct;
  sparse_case.pool.lengths = check::LengthPattern::partial;
  SparseMlaProblem problem = runner.make_problem(sparse_case);
  const auto expected = runner.run(problem, problem.call());
  std::vector<int> indices(3 * 2 * 200);
  download_device_memory(problem.call().indices.data, indices.data(), indices.size() * 4,
                         runner.stream());
  std::vector<int> lengths(3);
  download_device_memory(problem.call().topk_length.data, lengths.data(), lengths.size() * 4,
                         runner.stream());
  REQUIRE(lengths[0] < 200);
  REQUIRE(lengths[1] > 1);
  const auto with = [&](std::size_t place, int index) {
    std::vector<int> changed = indices;
    changed[place] = index;
    const DeviceBuffer buffer = make_device_buffer<int>(0, changed, runner.stream().handle());
    SparseMlaCall call = problem.call();
    call.indices.data = buffer.data();
    return runner.run(problem, call);
  };
  CHECK(with(199, -7) == expected);
  CHECK(with(199, 5) == expected);
  CHECK(with(2 * 200, indices[2 * 200 + 1]) != expected);
}

TEST_CASE("a token-sparse call in a graph follows indices in device memory") {
  const Runner runner;
  for (const KvEncoding encoding : {KvEncoding::plain, KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    SparseMlaProblem problem = runner.make_problem(example_case(encoding));
    const auto expected = runner.run(problem, problem.call());
    const DeviceGraph graph(runner.stream(), [&] {
      run_sparse_mla(runner.kernel(problem), problem.call(), runner.stream().handle());
    });
    problem.poison_outputs(runner.stream());
    graph.launch(runner.stream());
    CHECK(problem.download_outputs(runner.stream()) == expected);
  }
}

// Elements of an output, and numbers of an LSE, contiguous by token and head.
struct Part {
  DeviceBuffer out;
  DeviceBuffer lse;
};

Part make_part(std::size_t rows) {
  return {DeviceBuffer(0, rows * 512 * 2), DeviceBuffer(0, rows * 4)};
}

TEST_CASE("calls over halves of the indices merge into the call over all of them") {
  const Runner runner;
  SparseMlaCase sparse_case;
  sparse_case.descriptor = sparse_mla_prefill_descriptor({.num_q_heads = 16});
  sparse_case.batch = 7;
  sparse_case.pool = {.topk = 128, .num_tokens = 200};
  SparseMlaProblem problem = runner.make_problem(sparse_case);
  constexpr std::size_t rows = 7 * 16;
  std::array<Part, 3> parts = {make_part(rows), make_part(rows), make_part(rows)};
  const auto run_part = [&](const Part& part, std::int64_t first, std::int64_t count) {
    SparseMlaCall call = problem.call();
    call.indices.data = static_cast<int*>(call.indices.data) + first;
    call.indices.shape[2] = count;
    call.out = contiguous_view(part.out.data(), DataType::bf16, {7, 16, 512});
    call.lse = contiguous_view(part.lse.data(), DataType::fp32, {7, 16});
    run_sparse_mla(runner.kernel(problem), call, runner.stream().handle());
  };
  run_part(parts[0], 0, 50);
  run_part(parts[1], 50, 78);
  run_part(parts[2], 0, 128);
  const std::array<PartialAttention, 2> partials = {
      {{contiguous_view(parts[0].out.data(), DataType::bf16, {7, 16, 512}),
        contiguous_view(parts[0].lse.data(), DataType::fp32, {7, 16})},
       {contiguous_view(parts[1].out.data(), DataType::bf16, {7, 16, 512}),
        contiguous_view(parts[1].lse.data(), DataType::fp32, {7, 16})}}};
  merge_attention_states(*gpu_runtime().prepare_merge(merge_states_descriptor(512), 0),
                         {partials, partials[0].out, partials[0].lse}, runner.stream().handle());
  const auto merged =
      download_values<std::uint16_t>(parts[0].out, rows * 512, runner.stream().handle());
  const auto whole =
      download_values<std::uint16_t>(parts[2].out, rows * 512, runner.stream().handle());
  double worst = 0;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    worst = std::max(worst, std::abs(from_bf16(merged[i]) - from_bf16(whole[i])));
  }
  CHECK(worst < 2e-3);
}

}  // namespace
}  // namespace attnjit
