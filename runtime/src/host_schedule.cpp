#include "host_schedule.hpp"

#include <utility>

#include "interface/chunk_schedule.h"

namespace attnjit {

using namespace kernel_interface;

namespace {

std::vector<long long> make_unit_offsets(std::span<const int> seq_lens, int seqlen_q,
                                         const ScheduleConfig& config) {
  std::vector<long long> offsets(seq_lens.size() + 1, 0);
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    const int length = visible_length(seq_lens[b], seqlen_q, config.window_left, config.block_n);
    offsets[b + 1] = offsets[b] + request_units(length, config.block_n);
  }
  return offsets;
}

std::vector<int> make_piece_offsets(const std::vector<long long>& unit_offsets,
                                    long long per_part) {
  std::vector<int> offsets(unit_offsets.size(), 0);
  for (std::size_t b = 0; b + 1 < unit_offsets.size(); ++b) {
    const int pieces = num_pieces_of(unit_offsets[b], unit_offsets[b + 1], per_part);
    offsets[b + 1] = offsets[b] + (pieces > 1 ? pieces : 0);
  }
  return offsets;
}

// The cheaper cutting.
HostSchedule cut_evenly(const std::vector<long long>& unit_offsets, const ScheduleConfig& config,
                        int num_parts) {
  const int batch = static_cast<int>(unit_offsets.size()) - 1;
  const ScheduleCosts costs = {config.piece_units, config.block_percent};
  HostSchedule schedule;
  long long best_per_part = 0;
  long long best_units = 0;
  for (int cutting = 0; cutting < num_cuttings; ++cutting) {
    const long long per_part = units_per_part(unit_offsets.back(), batch, num_parts, cutting);
    std::vector<int> piece_offsets = make_piece_offsets(unit_offsets, per_part);
    const long long units =
        cutting_units(unit_offsets.back(), num_parts, per_part, piece_offsets.back(), costs);
    if (cutting == 0 || units < best_units) {
      best_per_part = per_part;
      best_units = units;
      schedule.piece_offsets = std::move(piece_offsets);
    }
  }
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_part(unit_offsets.data(), batch, best_per_part, part));
  }
  return schedule;
}

HostSchedule cut_into_chunks(const std::vector<long long>& unit_offsets, const ChunkRule& rule,
                             int num_parts) {
  const int batch = static_cast<int>(unit_offsets.size()) - 1;
  HostSchedule schedule;
  schedule.piece_offsets.push_back(0);
  for (std::size_t b = 0; b + 1 < unit_offsets.size(); ++b) {
    const int chunks = num_chunks_of(unit_offsets[b], unit_offsets[b + 1], rule);
    schedule.piece_offsets.push_back(schedule.piece_offsets.back() + (chunks > 1 ? chunks : 0));
  }
  const long long per_part = units_per_part(unit_offsets.back(), num_parts);
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_chunk_part(unit_offsets.data(), batch, per_part, part, rule));
  }
  return schedule;
}

}  // namespace

HostSchedule make_host_schedule(std::span<const int> seq_lens, int seqlen_q,
                                const ScheduleConfig& config, const DecodeGrid& grid) {
  const auto unit_offsets = make_unit_offsets(seq_lens, seqlen_q, config);
  return config.chunk_blocks > 0
             ? cut_into_chunks(unit_offsets, {config.chunk_blocks, grid.most_chunks},
                               grid.num_parts)
             : cut_evenly(unit_offsets, config, grid.num_parts);
}

}  // namespace attnjit
