// Cuts the KV blocks of a batch into equal parts on the device, from device-side lengths: no host
// copy, so that it can be captured and replayed with lengths that grow. One block.
#include "kernel_config.cuh"

#include "interface/chunk_schedule.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int num_warps = config::num_threads / 32;

struct SharedStorage {
  long long warp_sums[num_warps];
};

// The requests of this thread: a run of consecutive ones. It is of one request but in the largest
// batches: loops over it are not unrolled, which would double the kernel and its compile.
struct Run {
  int first;
  int end;
};

__device__ __forceinline__ long long inclusive_scan_in_warp(long long value, int lane) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const long long below = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step)
      value += below;
  }
  return value;
}

// The sum of `value` over all threads before this one. All threads of the block take part.
__device__ __forceinline__ long long exclusive_scan(SharedStorage& shared, long long value) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const long long inclusive = inclusive_scan_in_warp(value, lane);
  __syncthreads();  // the sums of an earlier scan are no longer read
  if (lane == 31)
    shared.warp_sums[warp] = inclusive;
  __syncthreads();  // every warp's sum is written
  long long before = inclusive - value;
  for (int i = 0; i < warp; ++i)
    before += shared.warp_sums[i];
  return before;
}

// The sum of `value` over all threads, in all threads.
__device__ __forceinline__ long long sum_of_block(SharedStorage& shared, long long value) {
  exclusive_scan(shared, value);
  long long sum = 0;
  for (int warp = 0; warp < num_warps; ++warp)
    sum += shared.warp_sums[warp];
  return sum;
}

constexpr bool has_chunks = config::chunk_blocks > 0;

__device__ __forceinline__ ChunkRule chunk_rule(const ScheduleArguments& arguments) {
  return {config::chunk_blocks, arguments.most_chunks};
}

__device__ __forceinline__ int num_pieces(const ScheduleArguments& arguments, int request,
                                          long long per_part) {
  const long long begin = arguments.unit_offsets[request];
  const long long end = arguments.unit_offsets[request + 1];
  int count = 0;
  if constexpr (has_chunks) {
    count = num_chunks_of(begin, end, chunk_rule(arguments));
  } else {
    count = num_pieces_of(begin, end, per_part);
  }
  return count > 1 ? count : 0;
}

__device__ __forceinline__ long long num_pieces(const ScheduleArguments& arguments, const Run& run,
                                                long long per_part) {
  long long pieces = 0;
#pragma unroll 1
  for (int b = run.first; b < run.end; ++b)
    pieces += num_pieces(arguments, b, per_part);
  return pieces;
}

__device__ __forceinline__ long long units_of(const ScheduleArguments& arguments, int request) {
  const int length = visible_length(arguments.seq_lens[request], arguments.seqlen_q,
                                    config::window_left, config::block_n);
  return request_units(length, config::block_n);
}

// The cheaper cutting's units per part. Chunks are as many pieces whatever the parts.
__device__ __forceinline__ long long choose_per_part(SharedStorage& shared,
                                                     const ScheduleArguments& arguments,
                                                     const Run& run) {
  const ScheduleCosts costs = {config::piece_units, config::block_percent};
  const long long total = arguments.unit_offsets[arguments.batch];
  if constexpr (has_chunks)
    return units_per_part(total, arguments.num_parts);
  long long best = 0;
  long long best_units = 0;
#pragma unroll 1
  for (int cutting = 0; cutting < num_cuttings; ++cutting) {
    const long long per_part = units_per_part(total, arguments.batch, arguments.num_parts, cutting);
    const long long pieces = sum_of_block(shared, num_pieces(arguments, run, per_part));
    const long long units = cutting_units(total, arguments.num_parts, per_part, pieces, costs);
    if (cutting == 0 || units < best_units) {
      best = per_part;
      best_units = units;
    }
  }
  return best;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_threads, 1)
    schedule_decode(const __grid_constant__ ScheduleArguments arguments) {
  __shared__ SharedStorage shared;
  const int batch = arguments.batch;
  const int length = (batch + config::num_threads - 1) / config::num_threads;
  Run run;
  run.first = min(static_cast<int>(threadIdx.x) * length, batch);
  run.end = min(run.first + length, batch);

  long long units = 0;
#pragma unroll 1
  for (int b = run.first; b < run.end; ++b)
    units += units_of(arguments, b);
  long long offset = exclusive_scan(shared, units);
#pragma unroll 1
  for (int b = run.first; b < run.end; ++b) {
    arguments.unit_offsets[b] = offset;
    offset += units_of(arguments, b);
    if (b == batch - 1)
      arguments.unit_offsets[batch] = offset;
  }
  __syncthreads();  // unit_offsets is written

  const long long per_part = choose_per_part(shared, arguments, run);
  int piece = static_cast<int>(exclusive_scan(shared, num_pieces(arguments, run, per_part)));
#pragma unroll 1
  for (int b = run.first; b < run.end; ++b) {
    arguments.piece_offsets[b] = piece;
    piece += num_pieces(arguments, b, per_part);
    if (b == batch - 1)
      arguments.piece_offsets[batch] = piece;
  }
  for (int part = threadIdx.x; part < arguments.num_parts; part += config::num_threads) {
    if constexpr (has_chunks) {
      arguments.parts[part] =
          make_chunk_part(arguments.unit_offsets, batch, per_part, part, chunk_rule(arguments));
    } else {
      arguments.parts[part] = make_part(arguments.unit_offsets, batch, per_part, part);
    }
  }
}
