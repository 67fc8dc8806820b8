// Split-KV decode for few query rows over a latent cache (MLA), by wgmma and TMA with the operands
// swapped: tokens on M, query rows on N in steps of 8, so that no head is padded to a tile of 64.
// Grid: y = kv heads, z = parts of the schedule.
//
// The consumer warpgroups take a request's tiles in turn: S^T = K Q^T, softmax over tokens, P to
// shared memory, O^T += V^T P^T, with V read from the K tile; at its end they merge their outputs.
#include "kernel_config.cuh"

#include "device/barrier_sm90.cuh"
#include "device/launch_sm90.cuh"
#include "device/matrix_descriptor_sm90.cuh"
#include "device/opaque_value.cuh"
#include "device/registers_sm90.cuh"
#include "device/swapped_decode_block.cuh"
#include "device/swapped_decode_output.cuh"
#include "device/swapped_decode_producer.cuh"
#include "device/swapped_decode_softmax.cuh"
#include "device/warp_uniform.cuh"
#include "device/wgmma_sm90.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

// A block of three warpgroups has 168 registers a thread; what producers give up, consumers get.
// Gathering takes more than starting tensor copies.
constexpr int producer_registers = gathers_rows ? 88 : 56;
constexpr int consumer_registers = gathers_rows ? 208 : 224;
static_assert(producer_registers + 2 * consumer_registers <= 3 * 168, "a deadlock otherwise");

// Each thread of a warp takes some of a consumer's barriers.
__device__ __forceinline__ void init_barriers(SharedStorage& shared) {
  const int consumer = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (consumer < num_consumers) {
    ConsumerBarriers& barriers = shared.barriers[consumer];
    constexpr int warps = 4;  // that release a box
    if (lane < config::ring_boxes)
      init_barrier(shared_address(&barriers.box_empty[lane]), warps);
    if (lane < 2)
      init_barrier(shared_address(&barriers.tile_full[lane]), warps_per_ring);
    if (consumer == 0 && lane < query_stages) {
      init_barrier(shared_address(&shared.query_barriers.full[lane]), 1);
      init_barrier(shared_address(&shared.query_barriers.empty[lane]), num_consumers * warps);
    }
    fence_barrier_init();
  }
  __syncthreads();  // barriers are ready for all roles
}

// V rows that no query sees, past the sequence's end or before a window, hold anything, NaN too,
// and 0 * NaN is NaN: zero rows [first_row, end_row). Gathered rows are zero there.
__device__ __forceinline__ void clear_rows(ConsumerStorage& storage, const RingPosition& ring,
                                           int first_row, int end_row, const Position& at) {
  const int chunks = (end_row - first_row) * 8;  // of 16 bytes, in one box
  for (int box = num_boxes - num_value_boxes; box < num_boxes; ++box) {
    Element* rows_to_clear = &storage.kv[ring.slot(box)][first_row * box_columns];
    for (int i = at.warp * 32 + at.lane; i < chunks; i += warpgroup_threads) {
      *reinterpret_cast<uint4*>(rows_to_clear + i * 8) = make_uint4(0, 0, 0, 0);
    }
  }
  fence_proxy_async();
  sync_consumer(at.consumer);  // all rows are cleared
}

__device__ __forceinline__ unsigned long long ring_descriptor(const ConsumerStorage& storage) {
  return make_matrix_descriptor(warp_uniform(shared_address(storage.kv)), 0, 1024, Swizzle::b128);
}

// Box by box in a loop: code that has to come from memory first is what a short call waits for.
__device__ __forceinline__ void compute_scores(const ConsumerStorage& storage,
                                               const QueryStorage& query_rows,
                                               const RingPosition& ring, int consumer,
                                               Scores& scores) {
  const unsigned long long all_queries = make_matrix_descriptor(
      warp_uniform(shared_address(query_rows.boxes)), 0, 1024, Swizzle::b128);
  const unsigned long long all_boxes = ring_descriptor(storage);
#pragma unroll
  for (int i = 0; i < rows / 2; ++i)
    scores[i] = 0.0f;
  hold(scores);
#pragma unroll 1
  for (int i = 0; i < num_boxes; ++i) {
    const unsigned long long keys =
        advance_matrix_descriptor(all_boxes, ring.slot(i) * box_elements * 2);
    const unsigned long long queries =
        advance_matrix_descriptor(all_queries, box_at(i, consumer) * rows * box_columns * 2);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma<config::dtype, rows, Major::k, Major::k>(
          scores, advance_matrix_descriptor(keys, step * 32),
          advance_matrix_descriptor(queries, step * 32), true);
    }
    wgmma_commit();
  }
  wgmma_wait<0>();
  hold(scores);
}

template <int box>
__device__ __forceinline__ void release_value_boxes(ConsumerBarriers& barriers,
                                                    const RingPosition& ring, const Position& at) {
  if constexpr (box < num_value_boxes) {
    wgmma_wait<num_value_boxes - 1 - box>();
    release(barriers.box_empty[ring.slot(num_boxes - num_value_boxes + box)], at);
    release_value_boxes<box + 1>(barriers, ring, at);
  }
}

// Box by box of V: 64 columns of the output, one m64 product over the tile's tokens.
__device__ __forceinline__ void accumulate_output(const ConsumerStorage& storage,
                                                  ConsumerBarriers& barriers,
                                                  const RingPosition& ring, const Position& at,
                                                  Output& out) {
  const unsigned long long all_boxes = ring_descriptor(storage);
  const unsigned long long probabilities =
      make_matrix_descriptor(warp_uniform(shared_address(storage.p)), 0, 1024, Swizzle::b128);
#pragma unroll
  for (int box = 0; box < num_value_boxes; ++box) {
    hold(out[box]);
  }
  wgmma_fence();
#pragma unroll
  for (int box = 0; box < num_value_boxes; ++box) {
    const unsigned long long values = advance_matrix_descriptor(
        all_boxes, ring.slot(num_boxes - num_value_boxes + box) * box_elements * 2);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma<config::dtype, rows, Major::mn, Major::k>(
          out[box], advance_matrix_descriptor(values, step * 2048),
          advance_matrix_descriptor(probabilities, step * 32), true);
    }
    wgmma_commit();
  }
  release_value_boxes<0>(barriers, ring, at);
#pragma unroll
  for (int box = 0; box < num_value_boxes; ++box) {
    hold(out[box]);
  }
}

__device__ __forceinline__ void process_tile(const PagedDecodeArguments& call,
                                             SharedStorage& shared, const RingPosition& ring,
                                             const DecodeRange& range, int block, bool is_first,
                                             unsigned stage, const Position& at,
                                             RunningSoftmax& softmax, Output& out) {
  ConsumerStorage& storage = shared.consumers[at.consumer];
  ColumnParts& parts = shared.column_parts[at.consumer];
  ConsumerBarriers& barriers = shared.barriers[at.consumer];
  const int first_token = block * tile_tokens;
  wait(shared_address(&barriers.tile_full[ring.tile % 2]), ring.tile / 2 % 2);
  if (!gathers_rows && range.seqlen_kv - first_token < tile_tokens) {
    clear_rows(storage, ring, range.seqlen_kv - first_token, tile_tokens, at);
  }
  if constexpr (has_window && !gathers_rows) {
    const int first_key = visible_keys(range.seqlen_kv, call.seqlen_q, 0).begin;
    if (first_key > first_token)
      clear_rows(storage, ring, 0, first_key - first_token, at);
  }
  Scores scores;
  compute_scores(storage, shared.queries[stage], ring, at.consumer, scores);
#pragma unroll
  for (int i = 0; i < num_boxes - num_value_boxes; ++i) {
    release(barriers.box_empty[ring.slot(i)], at);
  }
  if (block + num_consumers >= range.end_block)
    release(shared.query_barriers.empty[stage], at);
  mask_scores(scores, call.softmax_scale * log2_e, first_token, range.seqlen_kv, call.seqlen_q,
              at.warp, at.lane);
  store_row_maxima(parts, at.warp, at.lane, scores);
  sync_consumer(at.consumer);  // every warp's maxima are written
  float factors[row_tiles][2];
  update_softmax(parts, at.lane, scores, softmax, factors);
  store_probabilities(storage, at.warp, at.lane, scores);
  fence_proxy_async();
  if (!is_first)  // before, the output is zeros
    rescale_output(out, factors);
  sync_consumer(at.consumer);  // all probabilities are written; the maxima are no longer read
  accumulate_output(storage, barriers, ring, at, out);
}

__device__ __forceinline__ void consume(const SwappedDecodeArguments& arguments,
                                        SharedStorage& shared, const SchedulePart& part,
                                        const Position& at) {
  const PagedDecodeArguments& call = arguments.call;
  RingPosition ring;
  unsigned loads = 0;  // of queries
  RangeIndex index = first_index(part);
  while (index.request < end_request_of(part)) {
    const DecodeRange range = range_of(call, part, queries_of_block(call), index);
    RunningSoftmax softmax;
    reset(softmax);
    Output out;
#pragma unroll
    for (int box = 0; box < num_value_boxes; ++box) {
#pragma unroll
      for (int i = 0; i < rows / 2; ++i)
        out[box][i] = 0.0f;
    }
    const unsigned stage = loads % query_stages;
    wait(shared_address(&shared.query_barriers.full[stage]), loads / query_stages % 2);
    ++loads;
    const int first = range.first_block + at.consumer;
    if (!has_tiles(range) || first >= range.end_block)
      release(shared.query_barriers.empty[stage], at);  // no tile for this consumer
    if (has_tiles(range)) {
#pragma unroll 1
      for (int block = first; block < range.end_block; block += num_consumers) {
        process_tile(call, shared, ring, range, block, block == first, stage, at, softmax, out);
        ring.advance();
      }
    }
    finish_request(call, shared, range, at, softmax, out);
    index = index_after(range);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    swapped_decode_sm90(const __grid_constant__ SwappedDecodeArguments arguments) {
  extern __shared__ unsigned char shared_bytes[];
  SharedStorage& shared = align_storage<SharedStorage>(shared_bytes);
  // On its way while barriers get ready and the roles fetch their code.
  const SchedulePart part = arguments.call.parts[blockIdx.z];
  init_barriers(shared);
  launch_dependent_grids();  // the combine kernel waits for this grid's end by itself
  const int warpgroup = warp_uniform(threadIdx.x / warpgroup_threads);
  const int warp = warp_uniform(threadIdx.x / 32 % 4);
  const int lane = threadIdx.x % 32;
  if (warpgroup == num_consumers) {
    decrease_registers<producer_registers>();
    if (warp < num_consumers * warps_per_ring)
      produce(arguments, shared, part, warp, lane);
  }
  if (opaque(warpgroup) != num_consumers) {
    increase_registers<consumer_registers>();
    consume(arguments, shared, part, {warpgroup, warp, lane});
  }
}
