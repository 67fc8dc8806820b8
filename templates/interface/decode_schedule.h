// How the KV blocks of a batch are cut into equal parts. Shared by the host planner and the
// schedule kernel, so that both cut alike.
//
// The requests lie end to end on a line of cost units: request b takes `overhead_units` (starting a
// request costs about that many blocks) and then one unit per KV block of block_n keys. The line is
// cut into parts of `units_per_part`; a request that a cut falls into is split, and its pieces are
// merged afterwards. A request of length 0 counts one block, so that its output gets written.
#pragma once

#if defined(__CUDACC__)
#define ATTNJIT_HOST_DEVICE __host__ __device__
#else
#define ATTNJIT_HOST_DEVICE
#endif

namespace attnjit::kernel_interface {

constexpr int overhead_units = 1;

// What one part computes: blocks [first_block, …) of first_request, all of the requests between,
// and blocks [0, end_block) of end_request. A part without work has first_request == end_request
// and first_block == end_block.
struct SchedulePart {
  int first_request;
  int first_block;
  int end_request;
  int end_block;
  int first_piece;  // index of this part's piece among the pieces of first_request
};

ATTNJIT_HOST_DEVICE inline int num_kv_blocks(int seqlen_kv, int block_n) {
  const int blocks = seqlen_kv > 0 ? (seqlen_kv - 1) / block_n + 1 : 1;
  return blocks;
}

ATTNJIT_HOST_DEVICE inline long long request_units(int seqlen_kv, int block_n) {
  return overhead_units + static_cast<long long>(num_kv_blocks(seqlen_kv, block_n));
}

// A part may hold nothing but overhead; it then has no work.
ATTNJIT_HOST_DEVICE inline long long units_per_part(long long total_units, int num_parts) {
  const long long even = (total_units + num_parts - 1) / num_parts;
  return even > 1 ? even : 1;
}

// The part that computes the first block of a request which begins at `begin` on the line.
ATTNJIT_HOST_DEVICE inline long long first_part_of(long long begin, long long per_part) {
  return (begin + overhead_units) / per_part;
}

// Pieces that the request on [begin, end) of the line is cut into.
ATTNJIT_HOST_DEVICE inline int num_pieces_of(long long begin, long long end, long long per_part) {
  return static_cast<int>((end - 1) / per_part - first_part_of(begin, per_part)) + 1;
}

// The last b with unit_offsets[b] <= unit; unit_offsets: [batch + 1], ascending from 0.
ATTNJIT_HOST_DEVICE inline int find_request(const long long* unit_offsets, int batch,
                                            long long unit) {
  int low = 0;
  int high = batch;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (unit_offsets[middle] <= unit) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

ATTNJIT_HOST_DEVICE inline int block_at(long long request_begin, long long unit) {
  const long long block = unit - request_begin - overhead_units;
  return block > 0 ? static_cast<int>(block) : 0;
}

ATTNJIT_HOST_DEVICE inline SchedulePart make_part(const long long* unit_offsets, int batch,
                                                  long long per_part, int part) {
  const long long total = unit_offsets[batch];
  const long long begin = part * per_part;
  const long long end = begin + per_part;
  SchedulePart result = {batch, 0, batch, 0, 0};
  if (begin >= total) {
    return result;
  }
  result.first_request = find_request(unit_offsets, batch, begin);
  const long long first_begin = unit_offsets[result.first_request];
  result.first_block = block_at(first_begin, begin);
  const long long piece = part - first_part_of(first_begin, per_part);
  result.first_piece = piece > 0 ? static_cast<int>(piece) : 0;
  if (end < total) {
    result.end_request = find_request(unit_offsets, batch, end);
    result.end_block = block_at(unit_offsets[result.end_request], end);
  }
  return result;
}

// Arguments of kernels/schedule_decode.cu.
struct ScheduleArguments {
  const int* seq_lens;      // [batch], keys per request
  SchedulePart* parts;      // [num_parts], out
  int* piece_offsets;       // [batch + 1], out: where a split request's partial results begin;
                            // a request that is not split has none
  long long* unit_offsets;  // [batch + 1], out: where each request begins on the line
  int batch;
  int num_parts;
};

}  // namespace attnjit::kernel_interface
