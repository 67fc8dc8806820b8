// The producers of kernels/seesaw_decode_sm90.cu: two warps per KV tile keep it filled, quarter by
// quarter as the consumers are done with it: by tensor copies, one half of its columns each, or
// gathering, one half of its rows. All four gather a request's query rows.
#pragma once

#include "device/async_copy.cuh"
#include "device/barrier_sm90.cuh"
#include "device/gathered_rows.cuh"
#include "device/seesaw_decode_block.cuh"
#include "device/shared_address.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "interface/seesaw_decode_arguments.h"

using namespace attnjit::kernel_interface;

constexpr int query_threads = warpgroup_threads;
constexpr int warps_per_full = gathers_rows ? 2 : 1;  // that arrive when a quarter is there

// Two quarters of a tile: those of one consumer's columns. The first lanes, each its page.
__device__ __forceinline__ void load_half(const SeesawDecodeArguments& arguments,
                                          SharedStorage& shared, int tile, int half,
                                          unsigned parity, unsigned long long policy, int request,
                                          int token, int page, int lane) {
  const int batch = request * arguments.kv_batch_step;
  const int kv_head = blockIdx.y;
  constexpr int other_boxes = num_boxes - num_value_boxes;
  constexpr int most_boxes = quarter_boxes + other_boxes;
  const int first_element = pages_per_tile > 1 ? lane * page_tokens * box_columns : 0;
#pragma unroll 1
  for (int quarter = half * 2; quarter < half * 2 + 2; ++quarter) {
    const int boxes = quarter_boxes + (quarter_has_others(tile, quarter) ? other_boxes : 0);
    const unsigned full = shared_address(&shared.barriers.full[tile][quarter]);
    wait(shared_address(&shared.barriers.empty[tile][quarter]), parity ^ 1);
    if (lane == 0)
      arrive_expect_bytes(full, boxes * box_bytes);
#pragma unroll
    for (int i = 0; i < most_boxes; ++i) {
      if (i >= boxes)
        continue;
      const int box =
          i < quarter_boxes ? quarter * quarter_boxes + i : num_value_boxes + i - quarter_boxes;
      load_tensor(shared_address(&shared.kv[tile][box][first_element]), arguments.kv, full, policy,
                  box * box_columns, token % config::page_size, kv_head, page, batch);
    }
  }
}

// This warp's rows of a tile, whole rows at once: memory gives up quarters more slowly than is won
// by starting with them earlier. Where row tiles share pages, multiplication is the bound and a
// tile that is late costs most: rows are on their way to L2 before there is room for them.
__device__ __forceinline__ void gather_tile(SharedStorage& shared, int tile, unsigned parity,
                                            const GatheredRows& rows, int lane) {
  if (gridDim.x > 1)
    prefetch_row(rows);
  BoxPlaces boxes;
#pragma unroll
  for (int box = 0; box < num_boxes; ++box) {
    boxes.addresses[box] = shared_address(shared.kv[tile][0]) + box * box_bytes;
    boxes.columns[box] = box * box_columns;
  }
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter)
    wait(shared_address(&shared.barriers.empty[tile][quarter]), parity ^ 1);
#pragma unroll 2
  for (int i = 0; i < row_groups; ++i)
    copy_rows(rows, boxes, i, lane);
  announce_copies<4>(shared_address(shared.barriers.full[tile]), lane);
}

// The rows of this block's tile, zeros past the last: any strides, so no tensor map would do. All
// threads of one warpgroup.
__device__ __forceinline__ void load_queries(const PagedDecodeArguments& call,
                                             SharedStorage& shared, int request, int thread) {
  const int kv_head = blockIdx.y;
  const int first_row = blockIdx.x * block_rows;
  constexpr int chunks = box_columns / 8;  // of 16 bytes
  constexpr int rows_at_once = query_threads / chunks;
  static_assert(block_rows % rows_at_once == 0, "each thread loads as many rows");
  const int num_rows = call.seqlen_q * config::q_per_kv;
  const int chunk = thread % chunks;
#pragma unroll 1
  for (int row = thread / chunks; row < block_rows; row += rows_at_once) {
    const bool valid = first_row + row < num_rows;
    const int query = valid ? (first_row + row) / config::q_per_kv : 0;
    const int head =
        kv_head * config::q_per_kv + (valid ? (first_row + row) % config::q_per_kv : 0);
    const Element* source = static_cast<const Element*>(call.q) + request * call.q_strides.batch +
                            query * call.q_strides.token + head * call.q_strides.head + chunk * 8;
    Element* destination = &shared.q[0][row * box_columns + (chunk ^ row % 8) * 8];
#pragma unroll
    for (int box = 0; box < num_boxes; ++box)
      copy_async_16(destination + box * box_elements, source + box * box_columns, valid);
  }
  arrive_after_copies(shared_address(&shared.barriers.q_full));
}

// One of the warpgroup's four warps: each copies one half of one tile of every pair, and before
// them its share of a request's query rows, but for the first request's: a consumer loads those, so
// that neither waits. The first tile of a request is always tile 0.
__device__ __forceinline__ void produce(const SeesawDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part, int warp,
                                        int lane) {
  const int tile = warp / 2;
  const int half = warp % 2;
  unsigned parity = 0;
  unsigned q_parity = 0;
  const unsigned long long policy = make_cache_policy(is_short(arguments.call, part));
  const auto go_on = [&](int request) {
    wait(shared_address(&shared.barriers.q_empty), q_parity);  // the rows before are not read
    load_queries(arguments.call, shared, request, warp * 32 + lane);
    q_parity ^= 1;
  };
  const QueryRange queries = queries_of_block(arguments.call);
  for_each_tile(arguments.call, part, queries, warp, lane, go_on,
                [&](const DecodeRange& range, int block, int page) {
                  if ((block - range.first_block) % 2 != tile)
                    return;
                  if constexpr (gathers_rows) {
                    const GatheredRows rows =
                        gather_rows(arguments.call, range, queries, block, page, warp, lane);
                    gather_tile(shared, tile, parity, rows, lane);
                  } else if (lane < pages_per_tile) {
                    load_half(arguments, shared, tile, half, parity, policy, range.request,
                              block * tile_tokens, page, lane);
                  }
                  __syncwarp();
                  parity ^= 1;
                });
}
