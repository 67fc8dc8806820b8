// The producer of kernels/swapped_decode_sm90.cu: one warp keeps one consumer's queries and ring of
// boxes filled by tensor copies, box by box as the consumer is done with them.
#pragma once

#include "device/barrier_sm90.cuh"
#include "device/shared_address.cuh"
#include "device/swapped_decode_block.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "device/tile_pages.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

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

__device__ __forceinline__ void produce(const SwappedDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part,
                                        int consumer, int lane) {
  ConsumerStorage& storage = shared.consumers[consumer];
  ConsumerBarriers& barriers = shared.barriers[consumer];
  RingPosition ring;
  unsigned q_parity = 0;
  for_each_tile(arguments.call, part, lane, [&](const DecodeRange& range, int block, int page) {
    const bool is_first = block == range.first_block;
    if (lane == 0) {
      if (is_first)
        load_queries(arguments, storage, barriers, range, q_parity);
      load_tile(arguments, storage, barriers, ring, range.request, block * tile_tokens, page);
    }
    __syncwarp();
    if (is_first)
      q_parity ^= 1;
    ring.advance();
  });
}
