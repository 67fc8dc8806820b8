// What a model would compute, here made of numbers alone: q, k and v of each token of each request,
// the same whenever they are asked for; and attention over them in fp64. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attnjit_example {

constexpr int num_q_heads = 8;
constexpr int num_kv_heads = 2;
constexpr int head_dim = 128;

enum class Role { q, k, v };

// A token of a request, in one layer.
struct Token {
  int layer = 0;
  int request = 0;
  int position = 0;
};

// [heads, head_dim] in bf16: num_q_heads of q, num_kv_heads of k and v.
void write_values(Role role, const Token& token, std::span<std::uint16_t> values);

std::size_t count_values(Role role);

double from_bf16(std::uint16_t value);

struct TokenAttention {
  std::vector<double> out;  // [num_q_heads, head_dim]
  std::vector<double> lse;  // [num_q_heads]
};

// Of the token over itself and all tokens before it.
TokenAttention attend(const Token& token);

}  // namespace attnjit_example
