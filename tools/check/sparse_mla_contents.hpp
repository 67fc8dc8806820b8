// What the tensors of a token-sparse problem hold, made on the host: lists of indices, and the
// bytes of pools, in every encoding, with the values that they stand for. Written for the checks,
// apart from the kernel's reading of them. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "attnjit/tensor_view.hpp"
#include "sparse_mla_case.hpp"

namespace attnjit::check {

// Of one pool.
struct IndexLists {
  std::vector<int> indices;  // [query tokens, topk]
  std::vector<int> lengths;  // [batch]; empty: there is no such tensor
};

IndexLists make_index_lists(const SparseMlaCase& sparse_case, const TokenPoolCase& pool,
                            std::uint64_t seed);

// The tokens that each query token looks at, in the order of its list: [query tokens][…].
std::vector<std::vector<int>> named_tokens(const SparseMlaCase& sparse_case,
                                           const TokenPoolCase& pool, const IndexLists& lists);

struct TokenPool {
  TensorView view;  // as kv of SparseMlaCall; of no memory yet
  std::vector<unsigned char> bytes;
  // [tokens that lists name, head_dim_qk]: what kernels have to make of each, exactly.
  std::vector<float> values;
  std::vector<int> rows;  // [num_tokens]: a token's row of these, -1 if no list names it
};

// Bytes that no list names, between pages and of other tokens, are all `unnamed`.
TokenPool make_token_pool(const SparseMlaCase& sparse_case, const TokenPoolCase& pool,
                          const std::vector<std::vector<int>>& named, std::uint64_t seed,
                          unsigned char unnamed);

// N(0, scale^2) rounded to bf16 or fp16, as bits.
std::vector<std::uint16_t> random_elements(std::size_t count, DataType dtype, double scale,
                                           std::uint64_t seed);

}  // namespace attnjit::check
