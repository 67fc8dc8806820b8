#include "host_attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace attnjit {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double score(const HostAttention& attention, int b, int head, int query, int token) {
  const int kv_head = head / (attention.num_q_heads / attention.num_kv_heads);
  const int hidden = attention.seqlen_q - 1 - query;
  if (attention.is_causal && token >= attention.seq_lens[static_cast<std::size_t>(b)] - hidden) {
    return -infinity;
  }
  const double added = attention.mask ? attention.mask(b, head, query, token) : 0.0;
  if (added == -infinity) {
    return -infinity;
  }
  double sum = 0;
  for (int i = 0; i < attention.head_dim_qk; ++i) {
    sum += attention.q(b, head, query, i) * attention.k(b, kv_head, token, i);
  }
  const double scaled = sum * attention.softmax_scale;
  const double cap = attention.softcap;
  return (cap > 0 ? cap * std::tanh(scaled / cap) : scaled) + added;
}

void compute_row(const HostAttention& attention, int b, int head, int query, HostResult& result) {
  const int kv_head = head / (attention.num_q_heads / attention.num_kv_heads);
  const int seqlen = attention.seq_lens[static_cast<std::size_t>(b)];
  std::vector<double> scores;
  double maximum = -infinity;
  for (int token = 0; token < seqlen; ++token) {
    scores.push_back(score(attention, b, head, query, token));
    maximum = std::max(maximum, scores.back());
  }
  std::vector<double> out(static_cast<std::size_t>(attention.head_dim_v), 0.0);
  double sum = 0;
  for (int token = 0; token < seqlen && maximum > -infinity; ++token) {
    const double weight = std::exp(scores[static_cast<std::size_t>(token)] - maximum);
    sum += weight;
    for (int i = 0; i < attention.head_dim_v && weight > 0; ++i) {
      out[static_cast<std::size_t>(i)] += weight * attention.v(b, kv_head, token, i);
    }
  }
  const double sink =
      attention.sinks.empty()
          ? 0.0
          : std::exp(double{attention.sinks[static_cast<std::size_t>(head)]} - maximum);
  for (const double value : out) {
    result.out.push_back(sum > 0 ? value / (sum + sink) : 0.0);
  }
  result.lse.push_back(sum > 0 ? maximum + std::log(sum) : -infinity);
}

}  // namespace

HostResult compute(const HostAttention& attention) {
  HostResult result;
  for (int b = 0; b < attention.batch; ++b) {
    for (int query = 0; query < attention.seqlen_q; ++query) {
      for (int head = 0; head < attention.num_q_heads; ++head) {
        compute_row(attention, b, head, query, result);
      }
    }
  }
  return result;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double from_bf16(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    values.push_back(
        to_bf16(static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()))));
  }
  return values;
}

}  // namespace attnjit
