#include "host_schedule.hpp"

namespace attnjit {

using namespace kernel_interface;

HostSchedule make_host_schedule(std::span<const int> seq_lens, int block_n, int num_parts) {
  const int batch = static_cast<int>(seq_lens.size());
  std::vector<long long> unit_offsets(seq_lens.size() + 1, 0);
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    unit_offsets[b + 1] = unit_offsets[b] + request_units(seq_lens[b], block_n);
  }
  const long long per_part = units_per_part(unit_offsets.back(), num_parts);
  HostSchedule schedule;
  schedule.piece_offsets.assign(seq_lens.size() + 1, 0);
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    const int pieces = num_pieces_of(unit_offsets[b], unit_offsets[b + 1], per_part);
    schedule.piece_offsets[b + 1] = schedule.piece_offsets[b] + (pieces > 1 ? pieces : 0);
  }
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_part(unit_offsets.data(), batch, per_part, part));
  }
  return schedule;
}

}  // namespace attnjit
