// How the KV blocks of a batch are cut into equal parts. Shared by the host planner and the
// schedule kernel, so that both cut alike.
//
// The requests lie end to end on a line of cost units: request b takes `start_units` (a request
// costs that much to begin) and then `block_units` per KV block of block_n keys that holds a key
// which any of its queries sees; those before a sliding window do not count. The line is cut
// into parts of equal length; a request that a cut falls into is split, and its pieces are merged
// afterwards. A block belongs to the part that holds its beginning. A request of length 0 counts
// one block, so that its output gets written.
#pragma once

#if defined(__CUDACC__)
#define ATTNJIT_HOST_DEVICE __host__ __device__
#else
#define ATTNJIT_HOST_DEVICE
#endif

namespace attnjit::kernel_interface {

constexpr int block_units = 256;  // so that a cut may fall anywhere near a block
constexpr int start_units = block_units;
constexpr int combine_units = 3 * block_units / 2;  // of a combine kernel that has work

// What one part computes: blocks [first_block, …) of first_request, all of the requests between,
// and blocks [0, end_block) of end_request, counted from each request's first visible block. A part
// without work has first_request == end_request and first_block == end_block.
struct SchedulePart {
  int first_request;
  int first_block;
  int end_request;
  int end_block;
  int first_piece;  // index of this part's piece among the pieces of first_request
  int call_blocks;  // of all parts, starts among them; INT_MAX if there are more
};

ATTNJIT_HOST_DEVICE inline int num_kv_blocks(int seqlen_kv, int block_n) {
  const int blocks = seqlen_kv > 0 ? (seqlen_kv - 1) / block_n + 1 : 1;
  return blocks;
}

// The first key that any of a request's last `num_queries` queries sees through a window of
// `window_left` keys before each query's own; -1 = unbounded.
ATTNJIT_HOST_DEVICE inline int first_visible_key(int seqlen_kv, int num_queries, int window_left) {
  const int earliest = seqlen_kv - num_queries;  // position of the earliest of them
  return window_left >= 0 && earliest > window_left ? earliest - window_left : 0;
}

// The length that a schedule cuts: keys from the block of the first visible one on.
ATTNJIT_HOST_DEVICE inline int visible_length(int seqlen_kv, int seqlen_q, int window_left,
                                              int block_n) {
  return seqlen_kv - first_visible_key(seqlen_kv, seqlen_q, window_left) / block_n * block_n;
}

ATTNJIT_HOST_DEVICE inline long long request_units(int seqlen_kv, int block_n) {
  return start_units + static_cast<long long>(num_kv_blocks(seqlen_kv, block_n)) * block_units;
}

// What a schedule costs besides its blocks, in units.
struct ScheduleCosts {
  int piece_units;    // of a piece, for all parts of the device together
  int block_percent;  // of block_units that a block takes when memory is not what it waits for
};

// At least a block: a part without one would be a piece without a result. A part may hold nothing
// but starts; it then has no work.
ATTNJIT_HOST_DEVICE inline long long units_per_part(long long total_units, int num_parts) {
  const long long even = (total_units + num_parts - 1) / num_parts;
  return even > block_units ? even : block_units;
}

// Ways to cut: into as many parts as there are, all alike; so that requests of equal length are cut
// at their ends, or all in the same places, which leaves some parts empty; into half as many parts
// and a quarter, which leaves fewer pieces to merge where there is little to compute.
constexpr int num_cuttings = 4;

ATTNJIT_HOST_DEVICE inline long long units_per_part(long long total_units, int batch, int num_parts,
                                                    int cutting) {
  if (cutting != 1) {
    const int share = cutting == 0 ? 1 : 2 * (cutting - 1);
    return units_per_part(total_units, num_parts > share ? num_parts / share : 1);
  }
  const long long request = (total_units + batch - 1) / batch;
  const long long per_part = batch >= num_parts
                                 ? (batch + num_parts - 1) / num_parts * request
                                 : (request + num_parts / batch - 1) / (num_parts / batch);
  return per_part > block_units ? per_part : block_units;
}

// The time that a cutting takes, in units: its longest part, unless memory keeps all parts waiting;
// and what pieces cost. Memory serves `num_parts` parts no faster than fewer.
ATTNJIT_HOST_DEVICE inline long long cutting_units(long long total_units, int num_parts,
                                                   long long per_part, long long pieces,
                                                   const ScheduleCosts& costs) {
  const long long longest = per_part * costs.block_percent / 100;
  const long long even = units_per_part(total_units, num_parts);
  const long long blocks = longest > even ? longest : even;
  return pieces > 0 ? blocks + start_units + combine_units + pieces * costs.piece_units / num_parts
                    : blocks;
}

// The part that computes the first block of a request which begins at `begin` on the line.
ATTNJIT_HOST_DEVICE inline long long first_part_of(long long begin, long long per_part) {
  return (begin + start_units) / per_part;
}

// Pieces that the request on [begin, end) of the line is cut into.
ATTNJIT_HOST_DEVICE inline int num_pieces_of(long long begin, long long end, long long per_part) {
  return static_cast<int>((end - block_units) / per_part - first_part_of(begin, per_part)) + 1;
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

// Where a cut falls: before `block` of `request`. {batch, 0} is the end of the line.
struct ScheduleCut {
  int request;
  int block;
};

ATTNJIT_HOST_DEVICE inline ScheduleCut cut_at(const long long* unit_offsets, int batch,
                                              long long unit) {
  if (unit >= unit_offsets[batch]) {
    return {batch, 0};
  }
  const int request = find_request(unit_offsets, batch, unit);
  const long long into = unit - unit_offsets[request] - start_units;
  const long long block = into > 0 ? (into + block_units - 1) / block_units : 0;
  const long long first_of_next = unit_offsets[request] + start_units + block * block_units;
  if (first_of_next >= unit_offsets[request + 1]) {
    return {request + 1, 0};
  }
  return {request, static_cast<int>(block)};
}

// What lies between two cuts, as the first piece of its first request.
ATTNJIT_HOST_DEVICE inline SchedulePart part_between(const ScheduleCut& begin,
                                                     const ScheduleCut& end,
                                                     long long total_units) {
  constexpr long long most_blocks = 2147483647;
  const long long call_blocks = total_units / block_units;
  return {begin.request,
          begin.block,
          end.request,
          end.block,
          0,
          static_cast<int>(call_blocks < most_blocks ? call_blocks : most_blocks)};
}

ATTNJIT_HOST_DEVICE inline SchedulePart make_part(const long long* unit_offsets, int batch,
                                                  long long per_part, int part) {
  const ScheduleCut begin = cut_at(unit_offsets, batch, part * per_part);
  const ScheduleCut end = cut_at(unit_offsets, batch, (part + 1) * per_part);
  SchedulePart result = part_between(begin, end, unit_offsets[batch]);
  if (begin.block > 0) {
    result.first_piece =
        static_cast<int>(part - first_part_of(unit_offsets[begin.request], per_part));
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
  int seqlen_q;
  int most_chunks;  // of a request, where requests are cut into chunks
};

}  // namespace attnjit::kernel_interface
