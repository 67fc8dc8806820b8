// The producers of kernels/swapped_decode_sm90.cu: two warps per consumer keep its ring of boxes
// filled, box by box as the consumer is done with them. By tensor copies, each warp takes every
// second box: one thread starts a copy in about 80 clocks, too slow alone for a tile that is waited
// for. Gathering, each takes half of the tile's rows.
#pragma once

#include "device/barrier_sm90.cuh"
#include "device/gathered_rows.cuh"
#include "device/shared_address.cuh"
#include "device/swapped_decode_block.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "device/tile_pages.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

constexpr int warps_per_ring = 2;

// The tile before one, of the other consumer.
struct TileBefore {
  unsigned full;  // its barrier; 0 if there is none
  unsigned parity;
};

// `tiles` is how many the other consumer had so far. Only within a request: across, the order of
// tiles is not in turn.
__device__ __forceinline__ TileBefore tile_before(ConsumerBarriers& others, unsigned tiles,
                                                  bool has_before) {
  TileBefore before = {0, (tiles - 1) / 2 % 2};
  if (has_before)
    before.full = shared_address(&others.tile_full[(tiles - 1) % 2]);
  return before;
}

// Every second box of a tile, from `share`; the other warp of this consumer loads the rest. The
// third waits for the tile before: with more under way some multiprocessors run ahead and others
// finish late. Its barrier is then at most one phase on, and of the other parity: its next use is
// two tiles later, which a ring shorter than two tiles cannot begin before the tile between is used
// up, and that one waits for ours, or, in a later request, for both consumers' end of this one.
// The first lanes, each its page.
__device__ __forceinline__ void load_boxes(const SwappedDecodeArguments& arguments,
                                           ConsumerStorage& storage, ConsumerBarriers& barriers,
                                           const RingPosition& at, int consumer, int share,
                                           const TileBefore& before, unsigned long long policy,
                                           int request, int token, int page, int lane) {
  const unsigned full = shared_address(&barriers.tile_full[at.tile % 2]);
  const int batch = request * arguments.kv_batch_step;
  const int boxes = (num_boxes - share + warps_per_ring - 1) / warps_per_ring;
  const int first_element = pages_per_tile > 1 ? lane * page_tokens * box_columns : 0;
#pragma unroll 1
  for (int i = share; i < num_boxes; i += warps_per_ring) {
    const int slot = at.slot(i);
    wait(shared_address(&barriers.box_empty[slot]), at.parity_of(i) ^ 1);
    if (i / warps_per_ring == 2 && before.full != 0)
      wait(before.full, before.parity);
    if (i == share && lane == 0)
      arrive_expect_bytes(full, boxes * box_elements * 2);
    load_tensor(shared_address(&storage.kv[slot][first_element]), arguments.kv, full, policy,
                box_at(i, consumer) * box_columns, token % config::page_size, blockIdx.y, page,
                batch);
  }
}

// This warp's rows of a tile, whole rows at once. The second half of them waits for the tile
// before, as the third box does above.
__device__ __forceinline__ void gather_tile(ConsumerStorage& storage, ConsumerBarriers& barriers,
                                            const RingPosition& at, int consumer,
                                            const TileBefore& before, const GatheredRows& rows,
                                            int lane) {
  BoxPlaces boxes;
#pragma unroll
  for (int i = 0; i < num_boxes; ++i) {
    const int slot = at.slot(i);
    wait(shared_address(&barriers.box_empty[slot]), at.parity_of(i) ^ 1);
    boxes.addresses[i] = shared_address(storage.kv[slot]);
    boxes.columns[i] = box_at(i, consumer) * box_columns;
  }
#pragma unroll 2
  for (int i = 0; i < row_groups; ++i) {
    if (i == row_groups / 2 && before.full != 0)
      wait(before.full, before.parity);
    copy_rows(rows, boxes, i, lane);
  }
  announce_copies<1>(shared_address(&barriers.tile_full[at.tile % 2]), lane);
}

// One thread. `loads` counts the requests whose rows were loaded before.
__device__ __forceinline__ void load_queries(const SwappedDecodeArguments& arguments,
                                             SharedStorage& shared, unsigned loads, int request) {
  const int num_rows = arguments.call.seqlen_q * config::q_per_kv;
  const unsigned stage = loads % query_stages;
  const unsigned full = shared_address(&shared.query_barriers.full[stage]);
  wait(shared_address(&shared.query_barriers.empty[stage]), loads / query_stages % 2 ^ 1);
  arrive_expect_bytes(full, num_boxes * num_rows * box_columns * 2);
#pragma unroll 1
  for (int box = 0; box < num_boxes; ++box) {
    load_tensor(shared_address(shared.queries[stage].boxes[box]), arguments.q, full,
                box * box_columns, blockIdx.y * config::q_per_kv, 0, request);
  }
}

// One of the producer warps: two per consumer. The last loads query rows too, whether there are
// keys or not: that is not known yet when the rows are.
__device__ __forceinline__ void produce(const SwappedDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part, int warp,
                                        int lane) {
  const int consumer = warp / warps_per_ring;
  const bool has_queries = warp == num_consumers * warps_per_ring - 1;
  RingPosition ring;
  unsigned loads = 0;
  unsigned others = 0;  // tiles of the other consumer so far
  const unsigned long long policy = make_cache_policy(is_short(arguments.call, part));
  const auto load_rows = [&](int request) {
    if (has_queries && lane == 0)
      load_queries(arguments, shared, loads, request);
    ++loads;
  };
  if (part.first_request < end_request_of(part))
    load_rows(part.first_request);
  const PagedDecodeArguments& call = arguments.call;
  const QueryRange queries = queries_of_block(call);
  for_each_tile(
      call, part, queries, warp, lane, load_rows,
      [&](const DecodeRange& range, int block, int page) {
        if ((block - range.first_block) % num_consumers != consumer) {
          ++others;
          return;
        }
        if constexpr (gathers_rows) {
          const TileBefore before =
              tile_before(shared.barriers[1 - consumer], others, block > range.first_block);
          const GatheredRows rows = gather_rows(call, range, queries, block, page, warp, lane);
          gather_tile(shared.consumers[consumer], shared.barriers[consumer], ring, consumer, before,
                      rows, lane);
        } else if (lane < pages_per_tile) {
          const TileBefore before =
              tile_before(shared.barriers[1 - consumer], others, block > range.first_block);
          load_boxes(arguments, shared.consumers[consumer], shared.barriers[consumer], ring,
                     consumer, warp % warps_per_ring, before, policy, range.request,
                     block * tile_tokens, page, lane);
        }
        __syncwarp();
        ring.advance();
      });
}
