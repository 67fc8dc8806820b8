#include "mask_contents.hpp"

#include <algorithm>
#include <limits>

namespace attnjit::check {
namespace {

// The finaliser of splitmix64: consecutive inputs give independent bits.
std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

struct Coordinates {
  int request;
  int head;
  int row;
  int column;
};

std::uint64_t draw(const PrefillCase& prefill_case, std::uint64_t tensor, Coordinates at) {
  std::uint64_t bits = mix_bits(prefill_case.seed * 16 + tensor);
  for (const int coordinate : {at.request, at.head, at.row, at.column}) {
    bits = mix_bits(bits ^ static_cast<std::uint64_t>(coordinate));
  }
  return bits;
}

// The coordinates of what is read in place of (request, head, query): 0 where it is broadcast.
Coordinates read_at(const PrefillCase& prefill_case, int request, int head, int row, int column) {
  const MaskExtents& extents = prefill_case.mask_extents;
  Coordinates at = {request, head, row, column};
  at.request = extents.has_batch ? at.request : 0;
  if (extents.heads == MaskExtents::Heads::one) {
    at.head = 0;
  } else if (extents.heads == MaskExtents::Heads::kv) {
    at.head /= prefill_case.descriptor.q_per_kv();
  }
  return at;
}

std::uint64_t draw_of_mask(const PrefillCase& prefill_case, int request, int head, int query,
                           int key) {
  const int row = prefill_case.mask_extents.has_queries ? query : 0;
  return draw(prefill_case, 1, read_at(prefill_case, request, head, row, key));
}

int longest(const std::vector<int>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

bool mask_bit(const PrefillCase& prefill_case, int request, int head, int query, int key) {
  return draw_of_mask(prefill_case, request, head, query, key) % 3 != 0;
}

float mask_value(const PrefillCase& prefill_case, int request, int head, int query, int key) {
  const std::uint64_t bits = draw_of_mask(prefill_case, request, head, query, key);
  if (bits % 4 == 0) {
    return -std::numeric_limits<float>::infinity();
  }
  return static_cast<float>(static_cast<int>(bits / 4 % 33) - 16) / 8.0F;
}

float bias_value(const PrefillCase& prefill_case, int request, int head, int query, int key) {
  const int row = prefill_case.mask_extents.has_queries ? query : 0;
  const std::uint64_t bits = draw(prefill_case, 5, read_at(prefill_case, request, head, row, key));
  return static_cast<float>(static_cast<int>(bits % 33) - 16) / 8.0F;
}

bool tree_bit(const PrefillCase& prefill_case, int request, int head, int query, int draft) {
  if (draft >= query) {
    return draft == query && draft >= 0;
  }
  return draw(prefill_case, 2, read_at(prefill_case, request, head, query, draft)) % 2 != 0;
}

bool block_bit(const PrefillCase& prefill_case, int request, int head, int query_block,
               int key_block) {
  if (prefill_case.blocks == BlockPattern::all) {
    return true;
  }
  if (prefill_case.blocks == BlockPattern::empty_rows && query_block % 3 == 1) {
    return false;
  }
  return draw(prefill_case, 3, read_at(prefill_case, request, head, query_block, key_block)) % 2 !=
         0;
}

int segment_id(const PrefillCase& prefill_case, std::int64_t position) {
  const std::int64_t tokens = prefill_case.segment_tokens;
  const std::int64_t document = (position % tokens < 0 ? -1 : 0) + position / tokens;
  return static_cast<int>(draw(prefill_case, 4, {0, 0, 0, static_cast<int>(document)}) % 5 * 7) - 9;
}

int mask_keys(const PrefillCase& prefill_case) {
  return std::max(1, longest(prefill_case.kv_lens) - prefill_case.mask_shortage);
}

int query_blocks(const PrefillCase& prefill_case) {
  const int block = prefill_case.descriptor.sparsity_block;
  return std::max(1, (longest(prefill_case.q_lens) + block - 1) / block);
}

int key_blocks(const PrefillCase& prefill_case) {
  const int block = prefill_case.descriptor.sparsity_block;
  return std::max(
      1, (longest(prefill_case.kv_lens) + block - 1) / block - prefill_case.block_shortage);
}

}  // namespace attnjit::check
