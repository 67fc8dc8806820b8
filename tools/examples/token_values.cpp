#include "token_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attnjit_example {
namespace {

// Any fixed function that looks like noise.
std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 31;
  value *= 0x7fb5d329728ea185;
  value ^= value >> 27;
  value *= 0x81dadef4bc2dd44d;
  return value ^ (value >> 33);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::vector<std::uint16_t> values_of(Role role, const Token& token) {
  std::vector<std::uint16_t> values(count_values(role));
  write_values(role, token, values);
  return values;
}

double dot(const std::uint16_t* left, const std::uint16_t* right) {
  double sum = 0;
  for (int i = 0; i < head_dim; ++i) {
    sum += from_bf16(left[i]) * from_bf16(right[i]);
  }
  return sum;
}

}  // namespace

std::size_t count_values(Role role) {
  return static_cast<std::size_t>(role == Role::q ? num_q_heads : num_kv_heads) * head_dim;
}

double from_bf16(std::uint16_t value) {
  return double{std::bit_cast<float>(std::uint32_t{value} << 16)};
}

void write_values(Role role, const Token& token, std::span<std::uint16_t> values) {
  const std::uint64_t place =
      ((static_cast<std::uint64_t>(role) * 64 + static_cast<std::uint64_t>(token.layer)) * 4096 +
       static_cast<std::uint64_t>(token.request)) *
          65536 +
      static_cast<std::uint64_t>(token.position);
  const std::uint64_t seed = mix(place + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t noise = mix(seed + i) >> 40;
    values[i] = to_bf16(static_cast<float>(noise) / (1 << 23) - 1.0F);
  }
}

TokenAttention attend(const Token& token) {
  const std::vector<std::uint16_t> q = values_of(Role::q, token);
  std::vector<std::vector<std::uint16_t>> keys;
  std::vector<std::vector<std::uint16_t>> values;
  for (int position = 0; position <= token.position; ++position) {
    keys.push_back(values_of(Role::k, {token.layer, token.request, position}));
    values.push_back(values_of(Role::v, {token.layer, token.request, position}));
  }
  TokenAttention result;
  for (std::size_t head = 0; head < num_q_heads; ++head) {
    const std::size_t kv_column = head / (num_q_heads / num_kv_heads) * head_dim;
    std::vector<double> weights;
    for (const auto& key : keys) {
      weights.push_back(dot(&q[head * head_dim], &key[kv_column]) / std::sqrt(head_dim));
    }
    const double maximum = *std::max_element(weights.begin(), weights.end());
    std::vector<double> out(head_dim, 0.0);
    double sum = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      weights[j] = std::exp(weights[j] - maximum);
      sum += weights[j];
      for (std::size_t i = 0; i < head_dim; ++i) {
        out[i] += weights[j] * from_bf16(values[j][kv_column + i]);
      }
    }
    for (const double value : out) {
      result.out.push_back(value / sum);
    }
    result.lse.push_back(maximum + std::log(sum));
  }
  return result;
}

}  // namespace attnjit_example
