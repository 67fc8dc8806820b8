// A thread block of kernels/sparse_mla_sm80.cu: its shared memory, and which heads of which query
// token it computes. Sizes and registers are those of prefill_block.cuh.
#pragma once

#include "kernel_config.cuh"

#include "device/kv_encoding.cuh"
#include "device/prefill_block.cuh"
#include "interface/sparse_mla_arguments.h"

constexpr bool is_encoded = config::kv_encoding != KvEncoding::plain;

// Plain tokens are copied into one tile while the other is used. Encoded ones are copied as they
// are, while the one tile that they are decoded into is used.
constexpr int key_tile_count = is_encoded ? 1 : 2;

// Bytes of a copied row of encoded tokens.
template <KvEncoding encoding>
constexpr int encoded_pitch() {
  if constexpr (encoding != KvEncoding::plain)
    return EncodedToken<encoding>::pitch;
  else
    return 0;
}
constexpr int sparse_elements = first_key_element + key_tile_count * key_elements > out_elements
                                    ? first_key_element + key_tile_count* key_elements
                                    : out_elements;

// Where a gathered row comes from; null where the entry names no token.
struct TokenPlace {
  const unsigned char* row;
  const unsigned char* scales;  // of an encoding that has them apart
};

constexpr int valid_words = config::block_n / 32;
static_assert(valid_words * 32 == config::block_n, "whole warps look tokens up");
static_assert(config::block_n <= num_threads, "a thread looks up one token at most");

// Queries, then tiles of keys; at the end the output takes their place. Tile t's places lie in slot
// t % 2 until it has been copied, its valid bits in slot t % 4 until it has been used.
struct SharedStorage {
  alignas(16) unsigned char bytes[sparse_elements * 2 +
                                  config::block_n * encoded_pitch<config::kv_encoding>()];
  TokenPlace places[2][config::block_n];
  unsigned valid[4][valid_words];

  __device__ __forceinline__ Element* elements() { return reinterpret_cast<Element*>(bytes); }
  __device__ __forceinline__ unsigned char* encoded() { return bytes + sparse_elements * 2; }
};
static_assert(sizeof(SharedStorage) == config::shared_memory_bytes,
              "the host's shared-memory plan differs from SharedStorage");

struct SparseMlaWork {
  int request;
  int query;
  int first_head;
  int entries[attnjit::kernel_interface::most_pools];  // of each pool's list, one after the other

  __device__ __forceinline__ int num_entries() const { return entries[0] + entries[1]; }
  __device__ __forceinline__ int num_tiles() const {
    return (num_entries() + config::block_n - 1) / config::block_n;
  }
};

// Of thread block `block`: the head tiles of a query token are neighbours, which gather the same
// tokens at about the same time.
__device__ __forceinline__ SparseMlaWork
find_work(const attnjit::kernel_interface::SparseMlaArguments& arguments, unsigned block) {
  const unsigned head_tiles = (arguments.num_q_heads + config::block_m - 1) / config::block_m;
  const unsigned token = block / head_tiles;
  SparseMlaWork work;
  work.request = static_cast<int>(token / arguments.seqlen_q);
  work.query = static_cast<int>(token % arguments.seqlen_q);
  work.first_head = static_cast<int>(block % head_tiles) * config::block_m;
#pragma unroll
  for (int i = 0; i < attnjit::kernel_interface::most_pools; ++i) {
    const attnjit::kernel_interface::TokenIndices& list = arguments.indices[i];
    work.entries[i] = attnjit::kernel_interface::visible_entries(
        list, list.lengths != nullptr ? list.lengths[work.request] : list.count);
  }
  return work;
}

__device__ __forceinline__ long long row_offset(
    const attnjit::kernel_interface::QueryStrides& strides, const SparseMlaWork& work, int head) {
  return work.request * strides.batch + work.query * strides.token + head * strides.head;
}
