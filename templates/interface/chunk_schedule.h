// How the KV blocks of a batch are cut where results must not depend on the batch, to the bit:
// every request at multiples of `chunk_blocks` blocks from its own beginning, whatever else is in
// the batch. Each chunk is one piece; parts hold whole chunks. Shared by the host planner and the
// schedule kernel, as interface/decode_schedule.h.
#pragma once

#include "interface/decode_schedule.h"

namespace attnjit::kernel_interface {

struct ChunkRule {
  int blocks;  // per chunk
  int most;    // chunks of a request, for which there is workspace; the last takes what is left
};

// Chunks of the request on [begin, end) of the line; 1 if it is not split.
ATTNJIT_HOST_DEVICE inline int num_chunks_of(long long begin, long long end,
                                             const ChunkRule& rule) {
  const long long blocks = (end - begin - start_units) / block_units;
  const long long chunks = (blocks + rule.blocks - 1) / rule.blocks;
  return static_cast<int>(chunks < rule.most ? chunks : rule.most);
}

// A chunk belongs to the part that holds its beginning.
ATTNJIT_HOST_DEVICE inline ScheduleCut chunk_cut_at(const long long* unit_offsets, int batch,
                                                    long long unit, const ChunkRule& rule) {
  const ScheduleCut cut = cut_at(unit_offsets, batch, unit);
  if (cut.block == 0) {
    return cut;
  }
  const int chunk = (cut.block - 1) / rule.blocks + 1;
  const int chunks = num_chunks_of(unit_offsets[cut.request], unit_offsets[cut.request + 1], rule);
  return chunk < chunks ? ScheduleCut{cut.request, chunk * rule.blocks}
                        : ScheduleCut{cut.request + 1, 0};
}

// The parts hold equal shares of the line, to within a chunk.
ATTNJIT_HOST_DEVICE inline SchedulePart make_chunk_part(const long long* unit_offsets, int batch,
                                                        long long per_part, int part,
                                                        const ChunkRule& rule) {
  const ScheduleCut begin = chunk_cut_at(unit_offsets, batch, part * per_part, rule);
  const ScheduleCut end = chunk_cut_at(unit_offsets, batch, (part + 1) * per_part, rule);
  const bool is_empty = begin.request == end.request && begin.block == end.block;
  const ScheduleCut nothing = {end.request, 0};
  SchedulePart result =
      part_between(is_empty ? nothing : begin, is_empty ? nothing : end, unit_offsets[batch]);
  result.first_piece = result.first_block / rule.blocks;
  return result;
}

}  // namespace attnjit::kernel_interface
