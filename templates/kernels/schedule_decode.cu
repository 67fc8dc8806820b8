// Cuts the KV blocks of a batch into equal parts on the device, from device-side lengths: no host
// copy, so that it can be captured and replayed with lengths that grow. One block.
#include "kernel_config.cuh"

#include "interface/decode_schedule.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int num_warps = config::num_threads / 32;

struct SharedStorage {
  long long warp_sums[num_warps];
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

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_threads, 1)
    schedule_decode(const __grid_constant__ ScheduleArguments arguments) {
  __shared__ SharedStorage shared;
  const int batch = arguments.batch;
  // Each thread takes a run of consecutive requests.
  const int run = (batch + config::num_threads - 1) / config::num_threads;
  const int first = min(static_cast<int>(threadIdx.x) * run, batch);
  const int end = min(first + run, batch);

  long long units = 0;
  for (int b = first; b < end; ++b)
    units += request_units(arguments.seq_lens[b], config::block_n);
  long long offset = exclusive_scan(shared, units);
  for (int b = first; b < end; ++b) {
    arguments.unit_offsets[b] = offset;
    offset += request_units(arguments.seq_lens[b], config::block_n);
    if (b == batch - 1)
      arguments.unit_offsets[batch] = offset;
  }
  __syncthreads();  // unit_offsets is written

  const long long per_part = units_per_part(arguments.unit_offsets[batch], arguments.num_parts);
  long long pieces = 0;
  for (int b = first; b < end; ++b) {
    const int count =
        num_pieces_of(arguments.unit_offsets[b], arguments.unit_offsets[b + 1], per_part);
    pieces += count > 1 ? count : 0;
  }
  int piece = static_cast<int>(exclusive_scan(shared, pieces));
  for (int b = first; b < end; ++b) {
    const int count =
        num_pieces_of(arguments.unit_offsets[b], arguments.unit_offsets[b + 1], per_part);
    arguments.piece_offsets[b] = piece;
    piece += count > 1 ? count : 0;
    if (b == batch - 1)
      arguments.piece_offsets[batch] = piece;
  }
  for (int part = threadIdx.x; part < arguments.num_parts; part += config::num_threads) {
    arguments.parts[part] = make_part(arguments.unit_offsets, batch, per_part, part);
  }
}
