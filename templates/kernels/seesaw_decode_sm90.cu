// Split-KV decode for many query rows over a latent cache (MLA), by wgmma and TMA: 64 query rows on
// M. Grid: x = row tiles, y = kv heads, z = parts of the schedule; the row tiles of a part read the
// same pages and are launched as a cluster, so that they start together.
//
// The output of 64 rows fills half the register file, so the two consumer warpgroups hold one half
// of its columns each. They work on two KV tiles at a time, like a seesaw: each takes the scores
// and the softmax of its own tile, while the other's products keep the tensor cores busy, and then
// multiplies both tiles' probabilities by its half of V. The running maximum passes from tile 0 to
// tile 1 and on.
#include "kernel_config.cuh"

#include "device/barrier_sm90.cuh"
#include "device/launch_sm90.cuh"
#include "device/matrix_descriptor_sm90.cuh"
#include "device/opaque_value.cuh"
#include "device/registers_sm90.cuh"
#include "device/seesaw_decode_block.cuh"
#include "device/seesaw_decode_output.cuh"
#include "device/seesaw_decode_producer.cuh"
#include "device/seesaw_decode_softmax.cuh"
#include "device/warp_uniform.cuh"
#include "device/wgmma_sm90.cuh"
#include "interface/seesaw_decode_arguments.h"

namespace {

// Where rows are gathered, a window and chunks are more to look up than 40 registers hold.
constexpr bool has_most_to_look_up = gathers_rows && has_window && has_chunks;
constexpr int producer_registers = has_most_to_look_up ? 56 : 40;
constexpr int consumer_registers = has_most_to_look_up ? 224 : 232;
static_assert(producer_registers + 2 * consumer_registers <= 3 * 168, "a deadlock otherwise");

// Named barriers of both consumers, one per tile; 1 and 2 are each consumer's own.
constexpr int probabilities_ready = 3;
constexpr int scores_started = 6;

// Each thread of a warp takes some of the barriers.
__device__ __forceinline__ void init_barriers(BlockBarriers& barriers) {
  constexpr int warps = 4;  // of the consumer that releases a quarter
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    if (lane < num_consumers * 4) {
      init_barrier(shared_address(&barriers.full[0][0]) + lane * 8, warps_per_full);
      init_barrier(shared_address(&barriers.empty[0][0]) + lane * 8, warps);
    }
    if (lane == 8) {
      init_barrier(shared_address(&barriers.q_full), query_threads);
      init_barrier(shared_address(&barriers.q_empty), num_consumers * warps);
    }
    fence_barrier_init();
  }
  __syncthreads();  // barriers are ready for all roles
}

// A tile as its consumer sees it.
struct Tile {
  int first_token;
  unsigned parity;  // of its place's barriers
};

// V rows that no query sees, past the sequence's end or before a window, hold anything, NaN too,
// and 0 * NaN is NaN: zero rows [first_row, end_row), if any, of this consumer's tile. Gathered
// rows are zero there.
__device__ __forceinline__ void clear_rows(SharedStorage& shared, const Tile& tile, int first_row,
                                           int num_rows, const Position& at) {
  if (num_rows <= 0)
    return;
  for (int quarter = 0; quarter < 4; ++quarter)
    wait(shared_address(&shared.barriers.full[at.consumer][quarter]), tile.parity);
  const int chunks = num_rows * 8;  // of 16 bytes, in one box
#pragma unroll 1
  for (int box = 0; box < num_value_boxes; ++box) {
    Element* rows_to_clear = &shared.kv[at.consumer][box][first_row * box_columns];
#pragma unroll 1
    for (int i = at.warp * 32 + at.lane; i < chunks; i += warpgroup_threads)
      *reinterpret_cast<uint4*>(rows_to_clear + i * 8) = make_uint4(0, 0, 0, 0);
  }
  fence_proxy_async();
  sync_consumer(at.consumer);  // all rows are cleared
}

__device__ __forceinline__ void clear_hidden_rows(const PagedDecodeArguments& call,
                                                  SharedStorage& shared, const RowRange& rows,
                                                  const Tile& tile, const Position& at) {
  const int past_end = rows.seqlen_kv - tile.first_token;
  clear_rows(shared, tile, past_end, tile_tokens - past_end, at);
  if constexpr (has_window) {
    const int first_key =
        visible_keys(rows.seqlen_kv, call.seqlen_q, rows.first / config::q_per_kv).begin;
    clear_rows(shared, tile, 0, first_key - tile.first_token, at);
  }
}

// Computed from the address each time: kept over the loop, every descriptor of a tile would take a
// register.
__device__ __forceinline__ unsigned long long box_descriptor(const Element* box) {
  return make_matrix_descriptor(opaque(warp_uniform(shared_address(box))), box_bytes, 1024,
                                Swizzle::b128);
}

// Starts the scores of this consumer's tile, quarter by quarter as it arrives.
__device__ __forceinline__ void start_scores(SharedStorage& shared, const Tile& tile,
                                             const Position& at, Scores& scores) {
  const unsigned long long queries = box_descriptor(shared.q[0]);
  const unsigned long long keys = box_descriptor(shared.kv[at.consumer][0]);
  const unsigned full = shared_address(shared.barriers.full[at.consumer]);
#pragma unroll
  for (int box = 0; box < num_boxes; ++box) {
    if (box % quarter_boxes == 0 && box < num_value_boxes) {
      wait(full + box / quarter_boxes * 8, tile.parity);
      wgmma_fence();
    }
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma<config::dtype, tile_tokens, Major::k, Major::k>(
          scores, advance_matrix_descriptor(queries, box * box_bytes + step * 32),
          advance_matrix_descriptor(keys, box * box_bytes + step * 32), box + step > 0);
    }
  }
  wgmma_commit();
}

// Starts out += P V, quarter by quarter of this consumer's half of V, P in registers.
__device__ __forceinline__ void start_own_product(unsigned long long values,
                                                  Probabilities& probabilities, Output& out) {
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

// The same with P in shared memory.
__device__ __forceinline__ void start_other_product(unsigned long long values,
                                                    unsigned long long probabilities, Output& out) {
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

// The product of `tile`: the probabilities of a consumer's own tile are in its registers.
__device__ __forceinline__ void start_product(SharedStorage& shared, int tile, const Position& at,
                                              Probabilities& own, Output& out) {
  const unsigned long long values =
      box_descriptor(shared.kv[tile][at.consumer * 2 * quarter_boxes]);
  hold(out[0]);
  hold(out[1]);
  if (tile == at.consumer) {
    start_own_product(values, own, out);
  } else {
    start_other_product(values, box_descriptor(probabilities_of(shared, tile)), out);
  }
}

// Waits for the latest product and releases what it has read.
__device__ __forceinline__ void finish_product(SharedStorage& shared, int tile, const Position& at,
                                               Output& out) {
  unsigned long long* const empty = shared.barriers.empty[tile];
  wgmma_wait<1>();
  release(empty[at.consumer * 2], at);
  wgmma_wait<0>();
  release(empty[at.consumer * 2 + 1], at);
  hold(out[0]);
  hold(out[1]);
}

// Scores to probabilities, in registers and in place of a box that is no part of V.
__device__ __forceinline__ void take_softmax(const PagedDecodeArguments& call,
                                             SharedStorage& shared, const RowRange& rows,
                                             const Tile& tile, const Position& at, Scores& scores,
                                             Probabilities& probabilities, RunningSoftmax& softmax,
                                             RowFactors& factors) {
  if (call.softmax_scale < 0.0f) {
#pragma unroll
    for (int i = 0; i < tile_tokens / 2; ++i)
      scores[i] = -scores[i];
  }
  if (!tile_is_full(rows.seqlen_kv, call.seqlen_q, tile.first_token,
                    tile.first_token + tile_tokens)) {
    RowRange masked = rows;
    if constexpr (has_window) {
      masked.first = opaque(rows.first);
      find_keys(call, at, masked);
    }
    mask_scores(scores, tile.first_token, masked.keys, at.lane);
  }
  update_softmax(scores, score_scale(call.softmax_scale), softmax, factors);
  pack(scores, probabilities);
  sync_consumer(at.consumer);  // all warps' scores are done: the box is no longer read
  store_probabilities(probabilities_of(shared, at.consumer), probabilities, at.warp, at.lane);
  store_maxima(shared.maxima[at.consumer], softmax, at.warp, at.lane);
  fence_proxy_async();
  arrive_named_barrier<consumer_threads>(probabilities_ready + at.consumer);
  add_probabilities(scores, softmax);
}

// A pair of tiles, or a request's last tile alone: consumer i takes the scores of tile i, if there
// is one. Tile 0's scores go first, then tile 1's while consumer 0 is at its softmax, then products
// while consumer 1 is.
__device__ __forceinline__ void process_pair(const PagedDecodeArguments& call,
                                             SharedStorage& shared, const RowRange& rows,
                                             const Tile& tile, bool is_first_pair, bool has_second,
                                             bool is_last, const Position& at,
                                             RunningSoftmax& softmax, Output& out) {
  const bool is_first = at.consumer == 0;
  RowFactors before_first_product;
  RowFactors before_second_product;
  Scores scores;
  Probabilities probabilities;
  if (is_first || has_second) {
    if constexpr (!gathers_rows)
      clear_hidden_rows(call, shared, rows, tile, at);
    if (!is_first)
      sync_named_barrier<consumer_threads>(scores_started);
    start_scores(shared, tile, at, scores);
    if (has_second)
      arrive_named_barrier<consumer_threads>(scores_started + at.consumer);
    wgmma_wait<0>();
    hold(scores);
    if (is_last)
      release(shared.barriers.q_empty, at);
  }
  if (is_first) {
    take_softmax(call, shared, rows, tile, at, scores, probabilities, softmax,
                 before_first_product);
    if (has_second)
      sync_named_barrier<consumer_threads>(scores_started + 1);
  } else {
    sync_named_barrier<consumer_threads>(probabilities_ready);
    adopt_maxima(softmax, shared.maxima[0], at.warp, at.lane, before_first_product);
    if (has_second) {
      take_softmax(call, shared, rows, tile, at, scores, probabilities, softmax,
                   before_second_product);
    }
  }
  if (!is_first_pair)  // before, the output is zeros
    rescale(out, before_first_product);
  start_product(shared, 0, at, probabilities, out);
  if (is_first && has_second) {
    sync_named_barrier<consumer_threads>(probabilities_ready + 1);
    adopt_maxima(softmax, shared.maxima[1], at.warp, at.lane, before_second_product);
  }
  finish_product(shared, 0, at, out);
  if (has_second) {
    rescale(out, before_second_product);
    start_product(shared, 1, at, probabilities, out);
    finish_product(shared, 1, at, out);
  }
}

// `parity` is that of the barriers of this consumer's tile, flipped once per tile.
__device__ __forceinline__ void process_request(const PagedDecodeArguments& call,
                                                SharedStorage& shared, const DecodeRange& range,
                                                const RowRange& rows, const Position& at,
                                                unsigned& parity, RunningSoftmax& softmax,
                                                Output& out) {
#pragma unroll 1
  for (int block = range.first_block; block < range.end_block; block += 2) {
    const bool has_second = block + 1 < range.end_block;
    const int own_block = block + at.consumer;
    const Tile tile = {own_block * tile_tokens, parity};
    process_pair(call, shared, rows, tile, block == range.first_block, has_second,
                 own_block + 2 >= range.end_block, at, softmax, out);
    if (own_block < range.end_block)
      parity ^= 1;
  }
  if (range.first_block + at.consumer >= range.end_block)
    release(shared.barriers.q_empty, at);  // this consumer had no tile
}

__device__ __forceinline__ void consume(const SeesawDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part,
                                        const Position& at) {
  const PagedDecodeArguments& call = arguments.call;
  unsigned parity = 0;
  unsigned q_parity = 0;
  if (at.consumer == 1 && part.first_request < end_request_of(part))
    load_queries(call, shared, part.first_request, at.warp * 32 + at.lane);
  RangeIndex index = first_index(part);
  while (index.request < end_request_of(part)) {
    const DecodeRange range = range_of(call, part, queries_of_block(call), index);
    const RowRange rows = row_range(call, range, at);
    RunningSoftmax softmax;
    reset(softmax);
    Output out;
#pragma unroll
    for (int i = 0; i < quarter_columns / 2; ++i)
      out[0][i] = out[1][i] = 0.0f;
    wait(shared_address(&shared.barriers.q_full), q_parity);
    fence_proxy_async();  // the queries came by ordinary copies
    q_parity ^= 1;
    if (has_tiles(range)) {
      process_request(call, shared, range, rows, at, parity, softmax, out);
      add_sums(shared, softmax, at);
    } else {
      release(shared.barriers.q_empty, at);
    }
    store_output(call, range, rows, softmax, at, out);
    index = index_after(range);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    seesaw_decode_sm90(const __grid_constant__ SeesawDecodeArguments arguments) {
  extern __shared__ unsigned char shared_bytes[];
  SharedStorage& shared = align_storage<SharedStorage>(shared_bytes);
  // On its way while barriers get ready and the roles fetch their code.
  const SchedulePart part = arguments.call.parts[blockIdx.z];
  init_barriers(shared.barriers);
  launch_dependent_grids();  // the combine kernel waits for this grid's end by itself
  const int warpgroup = warp_uniform(threadIdx.x / warpgroup_threads);
  const int warp = warp_uniform(threadIdx.x / 32 % 4);
  const int lane = threadIdx.x % 32;
  if (warpgroup == num_consumers) {
    decrease_registers<producer_registers>();
    produce(arguments, shared, part, warp, lane);
  }
  if (opaque(warpgroup) != num_consumers) {
    increase_registers<consumer_registers>();
    consume(arguments, shared, part, {warpgroup, warp, lane});
  }
}
