// The GPU's fp64 reference of prefill against an independent one on the host, whose masks are those
// that cases define: every case of the suite, made small.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "check_kernels.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"
#include "mask_contents.hpp"
#include "prefill_problem.hpp"
#include "prefill_suite.hpp"
#include "prefill_tensors.hpp"
#include "reference_attention.hpp"

namespace attnjit {
namespace {

using check::PrefillCase;
using check::PrefillProblem;

constexpr std::size_t most_requests = 4;
constexpr int most_queries = 11;
constexpr int most_keys = 40;

void shorten(std::vector<int>& values) {
  values.resize(std::min(values.size(), most_requests));
}

void shorten(std::vector<int>& lengths, int most) {
  shorten(lengths);
  for (int& length : lengths) {
    length = std::min(length, most);
  }
}

// The same kind of problem, of few requests, tokens, heads and columns.
PrefillCase made_small(PrefillCase prefill_case) {
  AttentionDescriptor& descriptor = prefill_case.descriptor;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = DataType::bf16;
  descriptor.scales_q = descriptor.scales_kv = descriptor.scales_out = ScaleGrain::none;
  descriptor.scale_block = 0;
  descriptor.head_dim_qk = 24;
  descriptor.head_dim_v = 16;
  descriptor.num_q_heads = 4;
  descriptor.num_kv_heads = 2;
  descriptor.sparsity_block = descriptor.sparsity == Sparsity::block ? 16 : 0;
  shorten(prefill_case.q_lens, most_queries);
  shorten(prefill_case.kv_lens, most_keys);
  shorten(prefill_case.query_positions);
  shorten(prefill_case.key_positions);
  shorten(prefill_case.prefix_lens);
  prefill_case.mask_shortage = std::min(prefill_case.mask_shortage, 7);
  prefill_case.block_shortage = std::min(prefill_case.block_shortage, 1);
  prefill_case.arrangement = check::CacheArrangement::pool;
  return prefill_case;
}

// Tensors of a problem on the host.
class HostTensors {
 public:
  HostTensors(const PrefillProblem& problem, const DeviceStream& stream)
      : problem_(problem),
        q_(download<std::uint16_t>(problem.call().q, stream)),
        k_(download<std::uint16_t>(problem.call().k, stream)),
        v_(download<std::uint16_t>(problem.call().v, stream)),
        table_(download<int>(problem.call().block_table, stream)),
        q_offsets_(download<int>(problem.call().q_offsets, stream)),
        kv_offsets_(download<int>(problem.call().kv_offsets, stream)) {}

  // Row of a request's query among the reference's.
  std::int64_t row(int b, int query) const {
    return q_offsets_.empty() ? b * problem_.call().q.shape[1] + query
                              : q_offsets_[static_cast<std::size_t>(b)] + query;
  }

  double q(int b, int head, int query, int column) const {
    const TensorView& view = problem_.call().q;
    const auto& strides = view.strides;
    const std::int64_t index = view.rank == 3
                                   ? row(b, query) * strides[0] + head * strides[1]
                                   : b * strides[0] + query * strides[1] + head * strides[2];
    return from_bf16(q_[static_cast<std::size_t>(index + column)]);
  }

  double k(int b, int head, int token, int column) const {
    return key_element(problem_.call().k, k_, b, head, token, column);
  }

  double v(int b, int head, int token, int column) const {
    return v_.empty() ? k(b, head, token, column)
                      : key_element(problem_.call().v, v_, b, head, token, column);
  }

 private:
  template <typename Value>
  static std::vector<Value> download(const TensorView& view, const DeviceStream& stream) {
    std::vector<Value> values;
    if (view.data != nullptr) {
      values.resize(static_cast<std::size_t>(check::span_bytes(view)) / sizeof(Value));
      download_device_memory(view.data, values.data(), values.size() * sizeof(Value), stream);
    }
    return values;
  }

  double key_element(const TensorView& view, const std::vector<std::uint16_t>& values, int b,
                     int head, int token, int column) const {
    const AttentionDescriptor& descriptor = problem_.prefill_case().descriptor;
    const auto& strides = view.strides;
    std::int64_t index = 0;
    switch (descriptor.kv_layout_tag) {
      case KvLayoutTag::thd:
        index = (kv_offsets_[static_cast<std::size_t>(b)] + token) * strides[0] + head * strides[1];
        break;
      case KvLayoutTag::bshd:
        index = b * strides[0] + token * strides[1] + head * strides[2];
        break;
      case KvLayoutTag::bhsd:
        index = b * strides[0] + head * strides[1] + token * strides[2];
        break;
      case KvLayoutTag::nhd:
      case KvLayoutTag::hnd: {
        const bool is_hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
        const std::int64_t columns = problem_.call().block_table.shape[1];
        const int page =
            table_[static_cast<std::size_t>(b * columns + token / descriptor.page_size)];
        index = page * strides[0] + token % descriptor.page_size * strides[is_hnd ? 2 : 1] +
                head * strides[is_hnd ? 1 : 2];
        break;
      }
    }
    return from_bf16(values[static_cast<std::size_t>(index + column)]);
  }

  const PrefillProblem& problem_;
  std::vector<std::uint16_t> q_, k_, v_;
  std::vector<int> table_, q_offsets_, kv_offsets_;
};

// What mask and ALiBi add to a score.
double added_to_score(const PrefillCase& prefill_case, int request, int head, int query, int key) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  if (!is_visible(prefill_case, request, head, query, key)) {
    return -std::numeric_limits<double>::infinity();
  }
  double added = 0;
  if (descriptor.mask == MaskKind::materialized_additive) {
    added += static_cast<double>(mask_value(prefill_case, request, head, query, key));
  }
  if (descriptor.score_modifier == ScoreModifier::alibi) {
    const double slope = std::exp2(-8.0 * (head + 1) / descriptor.num_q_heads);
    const std::int64_t distance = first_query_position(prefill_case, request) + query -
                                  first_key_position(prefill_case, request) - key;
    added -= slope * static_cast<double>(std::abs(distance));
  }
  return added;
}

HostResult host_reference(const PrefillProblem& problem, const HostTensors& tensors, int request) {
  const PrefillCase& prefill_case = problem.prefill_case();
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  HostAttention attention;
  attention.num_q_heads = descriptor.num_q_heads;
  attention.num_kv_heads = descriptor.num_kv_heads;
  attention.seqlen_q = prefill_case.q_len(request);
  attention.head_dim_qk = descriptor.head_dim_qk;
  attention.head_dim_v = descriptor.head_dim_v;
  attention.softmax_scale = static_cast<double>(problem.call().softmax_scale);
  attention.softcap = static_cast<double>(problem.call().softcap);
  attention.is_causal = false;
  attention.seq_lens = {prefill_case.kv_len(request)};
  if (descriptor.has_sinks) {
    attention.sinks =
        check::draw_sinks(descriptor.num_q_heads, prefill_case.sinks, prefill_case.seed + 4);
  }
  attention.q = [&, request](int, int head, int query, int column) {
    return tensors.q(request, head, query, column);
  };
  attention.k = [&, request](int, int head, int token, int column) {
    return tensors.k(request, head, token, column);
  };
  attention.v = [&, request](int, int head, int token, int column) {
    return tensors.v(request, head, token, column);
  };
  attention.mask = [&, request](int, int head, int query, int token) {
    return added_to_score(prefill_case, request, head, query, token);
  };
  return compute(attention);
}

bool is_close(double value, double expected) {
  return value == expected || std::abs(value - expected) < 1e-11 * (1 + std::abs(expected));
}

// Results of the GPU that differ from the host's.
int count_differences(const PrefillProblem& problem, const check::ReferenceResult& on_gpu,
                      const DeviceStream& stream) {
  const PrefillCase& prefill_case = problem.prefill_case();
  const auto heads = static_cast<std::size_t>(prefill_case.descriptor.num_q_heads);
  const auto columns = static_cast<std::size_t>(prefill_case.descriptor.head_dim_v);
  const std::size_t results = on_gpu.lse.bytes() / sizeof(double);
  const auto out = download_values<double>(on_gpu.out, results * columns, stream.handle());
  const auto lse = download_values<double>(on_gpu.lse, results, stream.handle());
  const HostTensors tensors(problem, stream);
  int differences = 0;
  for (int b = 0; b < prefill_case.batch(); ++b) {
    const HostResult expected = host_reference(problem, tensors, b);
    const std::size_t first = static_cast<std::size_t>(tensors.row(b, 0)) * heads;
    for (std::size_t i = 0; i < expected.lse.size(); ++i) {
      differences += is_close(lse[first + i], expected.lse[i]) ? 0 : 1;
    }
    for (std::size_t i = 0; i < expected.out.size(); ++i) {
      differences += is_close(out[first * columns + i], expected.out[i]) ? 0 : 1;
    }
  }
  return differences;
}

TEST_CASE("the fp64 reference of prefill on the GPU equals the one on the host") {
  const DeviceStream stream(0);
  const check::CheckKernels kernels = check::load_check_kernels(gpu_runtime().provider(), 0);
  for (const check::PrefillSuiteCase& suite_case : check::prefill_suite()) {
    const PrefillProblem problem(kernels, made_small(suite_case.prefill_case), stream, 7);
    INFO(suite_case.group << ": " << describe(problem.prefill_case()));
    const check::ReferenceResult on_gpu =
        check::compute_reference(kernels, problem.reference_call(), stream);
    CHECK(count_differences(problem, on_gpu, stream) == 0);
  }
}

}  // namespace
}  // namespace attnjit
