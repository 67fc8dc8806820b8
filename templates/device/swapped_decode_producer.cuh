// The producer of kernels/swapped_decode_sm90.cu: one warp keeps one consumer's queries and ring of
// boxes filled by tensor copies, box by box as the consumer is done with them.
#pragma once

#include "device/barrier_sm90.cuh"
#include "device/decode_range.cuh"
#include "device/shared_address.cuh"
#include "device/swapped_decode_block.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

__device__ __forceinline__ DecodeRange range_of(const PagedDecodeArguments& call,
                                                const SchedulePart& part, int request) {
  return decode_range(part, request, call.seq_lens, call.piece_offsets, tile_tokens);
}

__device__ __forceinline__ bool has_tiles(const DecodeRange& range) {
  return range.seqlen_kv > 0 && range.first_block < range.end_block;
}

__device__ __forceinline__ void load_queries(const SwappedDecodeArguments& arguments,
                                             ConsumerStorage& storage, ConsumerBarriers& barriers,
                                             const DecodeRange& range, unsigned parity) {
  wait(shared_address(&barriers.q_empty), parity ^ 1);  // the rows before are no longer read
  const unsigned full = shared_address(&barriers.q_full);
  const int num_rows = arguments.call.seqlen_q * config::q_per_kv;
  arrive_expect_bytes(full, num_boxes * num_rows * box_columns * 2);
  for (int box = 0; box < num_boxes; ++box) {
    load_tensor(shared_address(storage.q[box]), arguments.q, full, box * box_columns,
                blockIdx.x * config::q_per_kv, 0, range.request);
  }
}

__device__ __forceinline__ void load_tile(const SwappedDecodeArguments& arguments,
                                          ConsumerStorage& storage, ConsumerBarriers& barriers,
                                          const RingPosition& at, int request, int token,
                                          int page) {
  const unsigned full = shared_address(&barriers.tile_full[at.tile % 2]);
  const int batch = request * arguments.kv_batch_step;
#pragma unroll 1
  for (int i = 0; i < num_boxes; ++i) {
    const int slot = at.slot(i);
    wait(shared_address(&barriers.box_empty[slot]), at.parity_of(i) ^ 1);
    if (i == 0)
      arrive_expect_bytes(full, tile_bytes);
    load_tensor(shared_address(storage.kv[slot]), arguments.kv, full, box_at(i) * box_columns,
                token % config::page_size, blockIdx.x, page, batch);
  }
}

// The pages of 32 tiles from `block` on, one per lane.
__device__ __forceinline__ int find_pages(const PagedDecodeArguments& call,
                                          const DecodeRange& range, int block, int lane) {
  const int* table = call.block_table + range.request * call.block_table_stride;
  const int tile = block + lane;
  return tile < range.end_block && range.seqlen_kv > 0
             ? table[tile * tile_tokens / config::page_size]
             : 0;
}

__device__ __forceinline__ void produce(const SwappedDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part,
                                        int consumer, int lane) {
  ConsumerStorage& storage = shared.consumers[consumer];
  ConsumerBarriers& barriers = shared.barriers[consumer];
  const PagedDecodeArguments& call = arguments.call;
  const int end_request = end_request_of(part);
  RingPosition ring;
  unsigned q_parity = 0;
  if (part.first_request >= end_request)
    return;
  DecodeRange range = range_of(call, part, part.first_request);
  int pages = find_pages(call, range, range.first_block, lane);
  while (true) {
    // The next request's lengths and pages are looked up while this one's tiles are on their way.
    const bool is_last = range.request + 1 == end_request;
    const DecodeRange next = is_last ? range : range_of(call, part, range.request + 1);
    const int next_pages = is_last ? 0 : find_pages(call, next, next.first_block, lane);
    for (int block = range.first_block; has_tiles(range) && block < range.end_block; ++block) {
      const int ahead = (block - range.first_block) % 32;
      if (ahead == 0 && block > range.first_block)
        pages = find_pages(call, range, block, lane);
      const int page = __shfl_sync(0xffffffffu, pages, ahead);
      if (lane == 0) {
        if (block == range.first_block) {
          load_queries(arguments, storage, barriers, range, q_parity);
        }
        load_tile(arguments, storage, barriers, ring, range.request, block * tile_tokens, page);
      }
      __syncwarp();
      ring.advance();
    }
    if (is_last)
      return;
    if (has_tiles(range))
      q_parity ^= 1;
    range = next;
    pages = next_pages;
  }
}
