// The producers of kernels/swapped_decode_sm90.cu: one warp per consumer keeps its ring of boxes
// filled by tensor copies, box by box as the consumer is done with them; one loads query rows.
#pragma once

#include "device/barrier_sm90.cuh"
#include "device/shared_address.cuh"
#include "device/swapped_decode_block.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "device/tile_pages.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

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

// One warp.
__device__ __forceinline__ void produce_tiles(const SwappedDecodeArguments& arguments,
                                              SharedStorage& shared, const SchedulePart& part,
                                              int consumer, int lane) {
  RingPosition ring;
  for_each_tile(arguments.call, part, lane, [&](const DecodeRange& range, int block, int page) {
    if ((block - range.first_block) % config::num_consumers != consumer)
      return;
    if (lane == 0) {
      load_tile(arguments, shared.consumers[consumer], shared.barriers[consumer], ring,
                range.request, block * tile_tokens, page);
    }
    __syncwarp();
    ring.advance();
  });
}

// One thread.
__device__ __forceinline__ void produce_queries(const SwappedDecodeArguments& arguments,
                                                SharedStorage& shared, const SchedulePart& part) {
  const int num_rows = arguments.call.seqlen_q * config::q_per_kv;
  unsigned loads = 0;
  for (int request = part.first_request; request < end_request_of(part); ++request) {
    if (!has_tiles(range_of(arguments.call, part, request)))
      continue;
    const unsigned stage = loads % query_stages;
    const unsigned full = shared_address(&shared.query_barriers.full[stage]);
    wait(shared_address(&shared.query_barriers.empty[stage]), loads / query_stages % 2 ^ 1);
    arrive_expect_bytes(full, num_boxes * num_rows * box_columns * 2);
#pragma unroll 1
    for (int box = 0; box < num_boxes; ++box) {
      load_tensor(shared_address(shared.queries[stage].boxes[box]), arguments.q, full,
                  box * box_columns, blockIdx.x * config::q_per_kv, 0, request);
    }
    ++loads;
  }
}
