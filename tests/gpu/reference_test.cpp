// The GPU's fp64 reference against an independent one on the host, and proof that the comparison
// can fail.
#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "check_kernels.hpp"
#include "decode_problem.hpp"
#include "decode_suite.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"
#include "reference_attention.hpp"
#include "reference_comparison.hpp"

namespace attnjit {
namespace {

using check::CheckKernels;
using check::DecodeCase;
using check::DecodeProblem;

// The tensors of a problem on the host. The cache is a pool in nhd order.
struct HostTensors {
  HostTensors(const DecodeProblem& problem, const DeviceStream& stream)
      : q(download<std::uint16_t>(problem.call().q, stream)),
        cache(download<std::uint16_t>(problem.call().k_cache, stream)),
        table(download<int>(problem.call().block_table, stream)),
        descriptor(problem.decode_case().descriptor),
        columns(static_cast<int>(problem.call().block_table.shape[1])) {}

  template <typename Value>
  static std::vector<Value> download(const TensorView& view, const DeviceStream& stream) {
    std::vector<Value> values(static_cast<std::size_t>(view.shape[0] * view.strides[0]));
    download_device_memory(view.data, values.data(), values.size() * sizeof(Value), stream);
    return values;
  }

  double cached(int b, int head, int token, int column) const {
    const int page_size = descriptor.page_size;
    const int page = table[static_cast<std::size_t>(b * columns + token / page_size)];
    const std::int64_t row = std::int64_t{page} * page_size + token % page_size;
    return from_bf16(cache[static_cast<std::size_t>(
        (row * descriptor.num_kv_heads + head) * descriptor.head_dim_qk + column)]);
  }

  std::vector<std::uint16_t> q;
  std::vector<std::uint16_t> cache;
  std::vector<int> table;
  AttentionDescriptor descriptor;
  int columns;
};

HostResult host_reference(const DecodeProblem& problem, const HostTensors& tensors) {
  const DecodeCase& decode_case = problem.decode_case();
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  HostAttention attention;
  attention.batch = decode_case.batch();
  attention.num_q_heads = descriptor.num_q_heads;
  attention.num_kv_heads = descriptor.num_kv_heads;
  attention.seqlen_q = decode_case.seqlen_q;
  attention.head_dim_qk = descriptor.head_dim_qk;
  attention.head_dim_v = descriptor.head_dim_v;
  attention.softmax_scale = static_cast<double>(problem.call().softmax_scale);
  attention.seq_lens = decode_case.seq_lens;
  attention.q = [&](int b, int head, int query, int column) {
    const int row = (b * decode_case.seqlen_q + query) * descriptor.num_q_heads + head;
    return from_bf16(tensors.q[static_cast<std::size_t>(row * descriptor.head_dim_qk + column)]);
  };
  attention.k = attention.v = [&](int b, int head, int token, int column) {
    return tensors.cached(b, head, token, column);
  };
  return compute(attention);
}

TEST_CASE("the fp64 reference on the GPU equals the one on the host") {
  const DeviceStream stream(0);
  const CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  for (AttentionDescriptor descriptor :
       {check::mla_descriptor(19, 3), check::gqa_descriptor(12, 4, 72, 3)}) {
    descriptor.value_source = ValueSource::prefix_of_k;
    DecodeCase decode_case;
    decode_case.descriptor = descriptor;
    decode_case.seqlen_q = 3;
    decode_case.seq_lens = {0, 2, 65, 200};
    const DecodeProblem problem(kernels, decode_case, stream, 7);
    const check::ReferenceResult on_gpu =
        check::compute_reference(kernels, problem.reference_call(), stream);
    const HostResult on_host = host_reference(problem, HostTensors(problem, stream));
    const auto out = download_values<double>(on_gpu.out, on_host.out.size(), stream.handle());
    const auto lse = download_values<double>(on_gpu.lse, on_host.lse.size(), stream.handle());
    double worst = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      worst = std::max(worst, std::abs(out[i] - on_host.out[i]));
    }
    CHECK(worst < 1e-12);
    for (std::size_t i = 0; i < lse.size(); ++i) {
      const bool equal = lse[i] == on_host.lse[i] || std::abs(lse[i] - on_host.lse[i]) < 1e-12;
      CHECK(equal);
    }
  }
}

TEST_CASE("a result with another scale, or unwritten, fails the comparison") {
  const DeviceStream stream(0);
  const CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  DecodeCase decode_case;
  decode_case.descriptor = check::mla_descriptor(16, 1);
  decode_case.seq_lens = {300, 100};
  DecodeProblem problem(kernels, decode_case, stream, 1);
  DecodePlan plan(gpu_runtime().prepare_decode(decode_case.descriptor, 0), 2, 1);
  plan.update(decode_case.seq_lens, stream.handle());
  const DeviceBuffer workspace(0, static_cast<std::size_t>(plan.workspace_bytes()));

  problem.poison_outputs(stream);
  CHECK(compare_with_reference(kernels, problem, stream, {}).mismatches == 2 * 16 * 512 + 2 * 16);

  DecodeCall call = problem.call();
  run_decode(plan, call, workspace.data(), plan.workspace_bytes(), stream.handle());
  CHECK(compare_with_reference(kernels, problem, stream, {}).worst_excess < 1);

  call.softmax_scale *= 1.25f;
  run_decode(plan, call, workspace.data(), plan.workspace_bytes(), stream.handle());
  const check::Comparison comparison = compare_with_reference(kernels, problem, stream, {});
  CHECK(comparison.worst_excess > 1);
  CHECK(comparison.worst_lse_excess > 1);
}

// Of every row that a decode problem's reference gives.
struct ReferenceRows {
  std::vector<double> lse;
  std::vector<double> magnitude;
};

ReferenceRows reference_rows(const CheckKernels& kernels, const DecodeProblem& problem,
                             const DeviceStream& stream) {
  const check::ReferenceResult result =
      check::compute_reference(kernels, problem.reference_call(), stream);
  const std::size_t rows = result.lse.bytes() / sizeof(double);
  return {download_values<double>(result.lse, rows, stream.handle()),
          download_values<double>(result.magnitude, rows, stream.handle())};
}

TEST_CASE("the magnitude of a row is its query's norm times the largest of its keys'") {
  const DeviceStream stream(0);
  const CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  DecodeCase decode_case;
  decode_case.descriptor = check::mla_descriptor(19, 2);
  decode_case.seqlen_q = 2;
  decode_case.seq_lens = {0, 1, 200};
  const DecodeProblem problem(kernels, decode_case, stream, 7);
  const std::vector<double> magnitude = reference_rows(kernels, problem, stream).magnitude;
  const HostTensors tensors(problem, stream);
  for (int row = 0; row < 3 * 2 * 19; ++row) {
    const int b = row / 38;
    const int visible = decode_case.seq_lens[static_cast<std::size_t>(b)] - 1 + row / 19 % 2;
    double queries = 0;
    double keys = 0;
    for (int column = 0; column < 576; ++column) {
      const double q = from_bf16(tensors.q[static_cast<std::size_t>(row * 576 + column)]);
      queries += q * q;
    }
    for (int token = 0; token < visible; ++token) {
      double squares = 0;
      for (int column = 0; column < 576; ++column) {
        squares += tensors.cached(b, 0, token, column) * tensors.cached(b, 0, token, column);
      }
      keys = std::max(keys, squares);
    }
    const double expected =
        static_cast<double>(problem.call().softmax_scale) * std::sqrt(queries * keys);
    CHECK(magnitude[static_cast<std::size_t>(row)] == Approx(expected).margin(1e-12));
  }
}

// A single key that is nearly orthogonal to the query: an LSE near 0.
TEST_CASE("an LSE near 0 passes within what its scores may round, and fails at twice that") {
  const DeviceStream stream(0);
  const CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  DecodeCase decode_case;
  decode_case.descriptor = check::mla_descriptor(16, 1);
  decode_case.seq_lens = {1};
  const DecodeProblem problem(kernels, decode_case, stream, 1);
  const ReferenceRows rows = reference_rows(kernels, problem, stream);
  const check::Tolerance tolerance;
  for (const double factor : {0.9, 2.0}) {
    std::vector<float> lse;
    for (std::size_t row = 0; row < rows.lse.size(); ++row) {
      const double of_scores = check::Tolerance::score_rounding(576) * rows.magnitude[row];
      const double allowed = tolerance.lse_absolute +
                             std::max(tolerance.lse_relative * std::abs(rows.lse[row]), of_scores);
      lse.push_back(static_cast<float>(rows.lse[row] + factor * allowed));
    }
    const DeviceBuffer buffer = make_device_buffer<float>(0, lse, stream.handle());
    check::ReferenceCall call = problem.reference_call();
    call.call.lse.data = buffer.data();
    const check::Comparison comparison = compare_with_reference(kernels, call, stream, tolerance);
    CHECK(comparison.worst_lse_excess == Approx(factor).epsilon(0.05));
  }
}

}  // namespace
}  // namespace attnjit
