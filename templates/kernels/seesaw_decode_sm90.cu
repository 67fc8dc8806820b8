// Split-KV decode for many query rows over a latent cache (MLA), by wgmma and TMA: 64 query rows on
// M. Grid: x = row tiles * kv heads, y = parts of the schedule; the row tiles of a part read the same
// pages and are launched as a cluster, so that they start together.
//
// The output of 64 rows fills half the register file, so the two consumer warpgroups hold one half of
// its columns each. They work on two KV tiles at a time, like a seesaw: each takes the scores and the
// softmax of its own tile, while the other's products keep the tensor cores busy, and then multiplies
// both tiles' probabilities by its half of V. The running maximum passes from tile 0 to tile 1 and on.
#include "kernel_config.cuh"

#include "device/barrier_sm90.cuh"
#include "device/launch_sm90.cuh"
#include "device/matrix_descriptor_sm90.cuh"
#include "device/registers_sm90.cuh"
#include "device/seesaw_decode_block.cuh"
#include "device/seesaw_decode_output.cuh"
#include "device/seesaw_decode_producer.cuh"
#include "device/seesaw_decode_softmax.cuh"
#include "device/wgmma_sm90.cuh"
#include "interface/seesaw_decode_arguments.h"

namespace {

constexpr int producer_registers = 40;
constexpr int consumer_registers = 232;
static_assert(producer_registers + 2 * consumer_registers <= 3 * 168, "a deadlock otherwise");

// Named barriers; 0 is __syncthreads'. 1 and 2 are each consumer's own, 5 is add_sums'.
constexpr int probabilities_ready = 3;  // of tile 0; + 1: of tile 1
constexpr int scores_started = 6;       // of tile 0; + 1: of tile 1

__device__ __forceinline__ void init_shared(SharedStorage& shared) {
  BlockBarriers& barriers = shared.barriers;
  if (threadIdx.x == 0) {
    constexpr int warps = 4;  // of the consumer that releases a quarter
    for (int tile = 0; tile < num_consumers; ++tile) {
      for (int box = 0; box < num_boxes; ++box)
        init_barrier(shared_address(&barriers.full[tile][box]), 1);
      for (int quarter = 0; quarter < 4; ++quarter)
        init_barrier(shared_address(&barriers.empty[tile][quarter]), warps);
    }
    init_barrier(shared_address(&barriers.q_full), query_threads);
    init_barrier(shared_address(&barriers.q_empty), num_consumers * warps);
    fence_barrier_init();
  }
  __syncthreads();  // barriers are ready for all roles
}

// One arrival per warp: its lanes have no access of the shared memory left.
__device__ __forceinline__ void release(unsigned long long& barrier, const Position& at) {
  __syncwarp();
  if (at.lane == 0)
    arrive(shared_address(&barrier));
}

// All threads of this consumer.
template <int consumer>
__device__ __forceinline__ void sync_consumer() {
  sync_named_barrier<1 + consumer, warpgroup_threads>();
}

// V rows past the sequence's end hold anything, NaN too, and 0 * NaN is NaN: zero them.
template <int tile>
__device__ __forceinline__ void clear_rows(SharedStorage& shared, unsigned parity, int first_row,
                                           const Position& at) {
  for (int box = 0; box < num_boxes; ++box)
    wait(shared_address(&shared.barriers.full[tile][box]), parity);
  const int chunks = (tile_tokens - first_row) * 8;  // of 16 bytes, in one box
  for (int box = 0; box < num_value_boxes; ++box) {
    Element* rows_to_clear = &shared.kv[tile][box][first_row * box_columns];
    for (int i = at.warp * 32 + at.lane; i < chunks; i += warpgroup_threads)
      *reinterpret_cast<uint4*>(rows_to_clear + i * 8) = make_uint4(0, 0, 0, 0);
  }
  fence_proxy_async();
  sync_consumer<tile>();  // all rows are cleared
}

// Keeps the compiler from computing what follows from `value` once and for all before a loop, which
// would take a register for every descriptor of a tile.
__device__ __forceinline__ unsigned recomputed(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}

__device__ __forceinline__ unsigned long long box_descriptor(const Element* box) {
  return make_matrix_descriptor(recomputed(shared_address(box)), box_bytes, 1024, Swizzle::b128);
}

// Starts the scores of this consumer's tile, box by box as it arrives.
template <int tile>
__device__ __forceinline__ void start_scores(SharedStorage& shared, unsigned parity,
                                             Scores& scores) {
  const unsigned long long queries = box_descriptor(shared.q[0]);
  const unsigned long long keys = box_descriptor(shared.kv[tile][0]);
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) {
#pragma unroll
    for (int i = 0; i < boxes_of_quarter(tile, quarter); ++i) {
      const int box = box_of_quarter(quarter, i);
      wait(shared_address(&shared.barriers.full[tile][box]), parity);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        wgmma<config::dtype, tile_tokens, Major::k, Major::k>(
            scores, advance_matrix_descriptor(queries, box * box_bytes + step * 32),
            advance_matrix_descriptor(keys, box * box_bytes + step * 32), quarter + i + step > 0);
      }
    }
  }
  wgmma_commit();
}

// Starts out += P V of this consumer's half, quarter by quarter, with the probabilities of its own
// tile.
template <int tile>
__device__ __forceinline__ void start_own_product(SharedStorage& shared, int half,
                                                  Probabilities& probabilities, Output& out) {
  const unsigned long long values = box_descriptor(shared.kv[tile][half * 2 * quarter_boxes]);
  hold(out[0]);
  hold(out[1]);
#pragma unroll
  for (int step = 0; step < 4; ++step)
    hold(probabilities[step]);
  wgmma_fence();
#pragma unroll
  for (int quarter = 0; quarter < 2; ++quarter) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_a_in_registers<config::dtype, quarter_columns, Major::mn>(
          out[quarter], probabilities[step],
          advance_matrix_descriptor(values, quarter * quarter_boxes * box_bytes + step * 2048),
          true);
    }
    wgmma_commit();
  }
}

// The same with the other consumer's probabilities, which lie in shared memory.
template <int tile>
__device__ __forceinline__ void start_other_product(SharedStorage& shared, int half, Output& out) {
  const unsigned long long values = box_descriptor(shared.kv[tile][half * 2 * quarter_boxes]);
  const unsigned long long probabilities = box_descriptor(probabilities_of(shared, tile));
  hold(out[0]);
  hold(out[1]);
  wgmma_fence();
#pragma unroll
  for (int quarter = 0; quarter < 2; ++quarter) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma<config::dtype, quarter_columns, Major::k, Major::mn>(
          out[quarter], advance_matrix_descriptor(probabilities, step * 32),
          advance_matrix_descriptor(values, quarter * quarter_boxes * box_bytes + step * 2048),
          true);
    }
    wgmma_commit();
  }
}

// Waits for the latest product and releases its half of the tile.
__device__ __forceinline__ void finish_product(unsigned long long (&empty)[4], int half,
                                               const Position& at, Output& out) {
  wgmma_wait<1>();
  release(empty[half * 2], at);
  wgmma_wait<0>();
  release(empty[half * 2 + 1], at);
  hold(out[0]);
  hold(out[1]);
}

// A request's share of this block's part, as a consumer sees it.
struct Tile {
  int first_token;
  unsigned parity;  // of the barriers of its place
  bool is_last;     // of this consumer: the queries are no longer read
};

// Scores to probabilities, in registers and in place of a box that is no part of V.
template <int tile>
__device__ __forceinline__ void take_softmax(const PagedDecodeArguments& call,
                                             SharedStorage& shared, const RowRange& rows,
                                             const Tile& at_tile, const Position& at,
                                             Scores& scores, Probabilities& probabilities,
                                             RunningSoftmax& softmax) {
  if (call.softmax_scale < 0.0f) {
#pragma unroll
    for (int i = 0; i < tile_tokens / 2; ++i)
      scores[i] = -scores[i];
  }
  if (!tile_is_full<config::mask>(rows.seqlen_kv, call.seqlen_q,
                                  at_tile.first_token + tile_tokens))
    mask_scores(scores, at_tile.first_token, rows.limits, at.lane);
  update_softmax(scores, score_scale(call.softmax_scale), softmax);
  pack(scores, probabilities);
  sync_consumer<tile>();  // all warps' scores are done: the box is no longer read
  store_probabilities(probabilities_of(shared, tile), probabilities, at.warp, at.lane);
  store_maxima(shared.maxima[tile], softmax, at.warp, at.lane);
  fence_proxy_async();
}

template <int tile>
__device__ __forceinline__ void clear_past_end(SharedStorage& shared, const RowRange& rows,
                                               const Tile& at_tile, const Position& at) {
  const int valid = rows.seqlen_kv - at_tile.first_token;
  if (valid < tile_tokens)
    clear_rows<tile>(shared, at_tile.parity, valid, at);
}

// Consumer 0, one pair of tiles: tile 0's scores, and the left half of the output.
__device__ __forceinline__ void process_first(const PagedDecodeArguments& call,
                                              SharedStorage& shared, const RowRange& rows,
                                              const Tile& at_tile, bool has_second,
                                              const Position& at, RunningSoftmax& softmax,
                                              Output& out) {
  BlockBarriers& barriers = shared.barriers;
  clear_past_end<0>(shared, rows, at_tile, at);
  Scores scores;
  Probabilities probabilities;
  start_scores<0>(shared, at_tile.parity, scores);
  if (has_second)
    arrive_named_barrier<scores_started, consumer_threads>();
  wgmma_wait<0>();
  hold(scores);
  if (at_tile.is_last)
    release(barriers.q_empty, at);
  take_softmax<0>(call, shared, rows, at_tile, at, scores, probabilities, softmax);
  arrive_named_barrier<probabilities_ready, consumer_threads>();
  add_probabilities(scores, softmax);
  rescale(out, softmax.factor);
  if (has_second)
    sync_named_barrier<scores_started + 1, consumer_threads>();  // tile 1's scores go first
  start_own_product<0>(shared, 0, probabilities, out);
  if (has_second) {
    sync_named_barrier<probabilities_ready + 1, consumer_threads>();
    adopt_maxima(softmax, shared.maxima[1], at.warp, at.lane);
    finish_product(barriers.empty[0], 0, at, out);
    rescale(out, softmax.factor);
    start_other_product<1>(shared, 0, out);
    finish_product(barriers.empty[1], 0, at, out);
  } else {
    finish_product(barriers.empty[0], 0, at, out);
  }
}

// Consumer 1, one pair of tiles: tile 1's scores, and the right half of the output.
__device__ __forceinline__ void process_second(const PagedDecodeArguments& call,
                                               SharedStorage& shared, const RowRange& rows,
                                               const Tile& at_tile, const Position& at,
                                               RunningSoftmax& softmax, Output& out) {
  BlockBarriers& barriers = shared.barriers;
  clear_past_end<1>(shared, rows, at_tile, at);
  Scores scores;
  Probabilities probabilities;
  sync_named_barrier<scores_started, consumer_threads>();  // tile 0's scores go first
  start_scores<1>(shared, at_tile.parity, scores);
  arrive_named_barrier<scores_started + 1, consumer_threads>();
  wgmma_wait<0>();
  hold(scores);
  if (at_tile.is_last)
    release(barriers.q_empty, at);
  sync_named_barrier<probabilities_ready, consumer_threads>();
  adopt_maxima(softmax, shared.maxima[0], at.warp, at.lane);
  rescale(out, softmax.factor);
  take_softmax<1>(call, shared, rows, at_tile, at, scores, probabilities, softmax);
  arrive_named_barrier<probabilities_ready + 1, consumer_threads>();
  start_other_product<0>(shared, 1, out);
  add_probabilities(scores, softmax);
  finish_product(barriers.empty[0], 1, at, out);
  rescale(out, softmax.factor);
  start_own_product<1>(shared, 1, probabilities, out);
  finish_product(barriers.empty[1], 1, at, out);
}

// Consumer 1, a request's last tile if it is tile 0.
__device__ __forceinline__ void finish_odd(SharedStorage& shared, const Position& at,
                                           RunningSoftmax& softmax, Output& out) {
  sync_named_barrier<probabilities_ready, consumer_threads>();
  adopt_maxima(softmax, shared.maxima[0], at.warp, at.lane);
  rescale(out, softmax.factor);
  start_other_product<0>(shared, 1, out);
  finish_product(shared.barriers.empty[0], 1, at, out);
}

// `parity` is that of the barriers of this consumer's tile, flipped once per tile.
template <int consumer>
__device__ __forceinline__ void process_request(const PagedDecodeArguments& call,
                                                SharedStorage& shared, const DecodeRange& range,
                                                const RowRange& rows, const Position& at,
                                                unsigned& parity, RunningSoftmax& softmax,
                                                Output& out) {
#pragma unroll 1
  for (int block = range.first_block; block < range.end_block; block += 2) {
    const bool has_second = block + 1 < range.end_block;
    if constexpr (consumer == 0) {
      const Tile tile = {block * tile_tokens, parity, block + 2 >= range.end_block};
      process_first(call, shared, rows, tile, has_second, at, softmax, out);
      parity ^= 1;
    } else if (has_second) {
      const Tile tile = {(block + 1) * tile_tokens, parity, block + 3 >= range.end_block};
      process_second(call, shared, rows, tile, at, softmax, out);
      parity ^= 1;
    } else {
      finish_odd(shared, at, softmax, out);
    }
  }
  if (consumer == 1 && range.first_block + 1 == range.end_block)
    release(shared.barriers.q_empty, at);  // there was no tile 1: the queries were not read
}

template <int consumer>
__device__ __forceinline__ void consume(const SeesawDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part,
                                        const Position& at) {
  const PagedDecodeArguments& call = arguments.call;
  unsigned parity = 0;
  unsigned q_parity = 0;
  for (int request = part.first_request; request < end_request_of(part); ++request) {
    const DecodeRange range = range_of(call, part, request);
    const RowRange rows = row_range(arguments, range, at);
    RunningSoftmax softmax;
    reset(softmax);
    Output out;
#pragma unroll
    for (int i = 0; i < quarter_columns / 2; ++i)
      out[0][i] = out[1][i] = 0.0f;
    if (has_tiles(range)) {
      wait(shared_address(&shared.barriers.q_full), q_parity);
      fence_proxy_async();  // the queries came by ordinary copies
      q_parity ^= 1;
      process_request<consumer>(call, shared, range, rows, at, parity, softmax, out);
      add_sums<consumer>(shared, softmax, at);
    }
    store_output<consumer>(call, range, rows, softmax, at, out);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    seesaw_decode_sm90(const __grid_constant__ SeesawDecodeArguments arguments) {
  extern __shared__ unsigned char shared_bytes[];
  const unsigned misalignment = shared_address(shared_bytes) % 1024;
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(
      shared_bytes + (misalignment > 0 ? 1024 - misalignment : 0));
  init_shared(shared);
  launch_dependent_grids();  // the combine kernel waits for this grid's end by itself
  const int warpgroup = threadIdx.x / warpgroup_threads;
  const Position at = {static_cast<int>(threadIdx.x / 32 % 4), static_cast<int>(threadIdx.x % 32)};
  const SchedulePart part = arguments.call.parts[blockIdx.y];
  if (warpgroup == num_consumers) {
    decrease_registers<producer_registers>();
    if (at.warp == 0) {
      produce_tiles<0>(arguments, shared, part, at.lane);
    } else if (at.warp == 1) {
      produce_tiles<1>(arguments, shared, part, at.lane);
    } else {
      produce_queries(arguments, shared, part, threadIdx.x - consumer_threads - num_consumers * 32);
    }
  } else if (warpgroup == 0) {
    increase_registers<consumer_registers>();
    consume<0>(arguments, shared, part, at);
  } else {
    increase_registers<consumer_registers>();
    consume<1>(arguments, shared, part, at);
  }
}
