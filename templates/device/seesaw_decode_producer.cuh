// The producers of kernels/seesaw_decode_sm90.cu: two warps keep one KV tile each filled by tensor
// copies, quarter by quarter as the consumers are done with it; the others gather a request's query
// rows.
#pragma once

#include "device/async_copy.cuh"
#include "device/barrier_sm90.cuh"
#include "device/seesaw_decode_block.cuh"
#include "device/shared_address.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "interface/seesaw_decode_arguments.h"

using namespace attnjit::kernel_interface;

constexpr int query_threads = warpgroup_threads - num_consumers * 32;

template <int tile>
__device__ __forceinline__ void load_tile(const SeesawDecodeArguments& arguments,
                                          SharedStorage& shared, unsigned parity, int request,
                                          int token, int page) {
  const int batch = request * arguments.kv_batch_step;
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) {
    wait(shared_address(&shared.barriers.empty[tile][quarter]), parity ^ 1);
#pragma unroll
    for (int i = 0; i < boxes_of_quarter(tile, quarter); ++i) {
      const int box = box_of_quarter(quarter, i);
      const unsigned full = shared_address(&shared.barriers.full[tile][box]);
      arrive_expect_bytes(full, box_bytes);
      load_tensor(shared_address(shared.kv[tile][box]), arguments.kv, full, box * box_columns,
                  token % config::page_size, blockIdx.x / arguments.row_tiles, page, batch);
    }
  }
}

// One warp for tile 0 of each pair, one for tile 1. The first tile of a request is always tile 0.
template <int tile>
__device__ __forceinline__ void produce_tiles(const SeesawDecodeArguments& arguments,
                                              SharedStorage& shared, const SchedulePart& part,
                                              int lane) {
  unsigned parity = 0;
  for_each_tile(arguments.call, part, lane, [&](const DecodeRange& range, int block, int page) {
    if ((block - range.first_block) % 2 != tile)
      return;
    if (lane == 0)
      load_tile<tile>(arguments, shared, parity, range.request, block * tile_tokens, page);
    __syncwarp();
    parity ^= 1;
  });
}

// The rows of this block's tile, zeros past the last: any strides, so no tensor map would do.
__device__ __forceinline__ void load_queries(const PagedDecodeArguments& call,
                                             SharedStorage& shared, int request, int kv_head,
                                             int first_row, int thread) {
  constexpr int chunks = box_columns / 8;  // of 16 bytes
  const int num_rows = call.seqlen_q * config::q_per_kv;
  const int chunk = thread % chunks;
#pragma unroll 1
  for (int i = thread / chunks; i < block_rows * num_boxes; i += query_threads / chunks) {
    const int row = i / num_boxes;
    const int box = i % num_boxes;
    const bool valid = first_row + row < num_rows;
    const int query = valid ? (first_row + row) / config::q_per_kv : 0;
    const int head =
        kv_head * config::q_per_kv + (valid ? (first_row + row) % config::q_per_kv : 0);
    const Element* source = static_cast<const Element*>(call.q) +
                            request * call.q_strides.batch + query * call.q_strides.token +
                            head * call.q_strides.head + box * box_columns + chunk * 8;
    copy_async_16(&shared.q[box][row * box_columns + (chunk ^ row % 8) * 8], source, valid);
  }
  arrive_after_copies(shared_address(&shared.barriers.q_full));
}

// `thread` counts the query_threads.
__device__ __forceinline__ void produce_queries(const SeesawDecodeArguments& arguments,
                                                SharedStorage& shared, const SchedulePart& part,
                                                int thread) {
  unsigned parity = 0;
  for (int request = part.first_request; request < end_request_of(part); ++request) {
    if (has_tiles(range_of(arguments.call, part, request))) {
      wait(shared_address(&shared.barriers.q_empty), parity ^ 1);  // the rows before are not read
      load_queries(arguments.call, shared, request, blockIdx.x / arguments.row_tiles,
                   blockIdx.x % arguments.row_tiles * block_rows, thread);
      parity ^= 1;
    }
  }
}
