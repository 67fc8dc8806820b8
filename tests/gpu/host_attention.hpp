// Attention in fp64 on the host, straight from the definition, over the dense layout that a block
// table describes: independent of everything on the GPU. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace attnjit {

struct HostAttention {
  int batch = 1;
  int num_q_heads = 1;
  int num_kv_heads = 1;
  int seqlen_q = 1;
  int head_dim_qk = 1;
  int head_dim_v = 1;
  double softmax_scale = 1;
  bool is_causal = true;
  std::vector<int> seq_lens;
  // Elements by (request, head, query or token, column).
  std::function<double(int, int, int, int)> q, k, v;
  double softcap = 0;        // c of c * tanh(score / c); 0: none
  std::vector<float> sinks;  // of query heads; empty: none
  // Added to a score, -inf hides the key, whatever it holds, by (request, head, query, token); not
  // called if not set.
  std::function<double(int, int, int, int)> mask;
};

struct HostResult {
  std::vector<double> out;  // [batch, seqlen_q, num_q_heads, head_dim_v]
  std::vector<double> lse;  // [batch, seqlen_q, num_q_heads], natural logarithm
};

HostResult compute(const HostAttention& attention);

// 16-bit elements and back; bf16 rounds to nearest even.
std::uint16_t to_bf16(float value);
double from_bf16(std::uint16_t bits);

// N(0, 1), the same with every standard library.
std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed);

}  // namespace attnjit
