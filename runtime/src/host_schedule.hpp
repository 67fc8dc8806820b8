// How a batch's KV blocks are cut into parts, on the host: the same cut as
// kernels/schedule_decode.cu makes on the device, by the same functions of
// interface/decode_schedule.h. Pure; thread-safe.
#pragma once

#include <span>
#include <vector>

#include "attnjit/decode_grid.hpp"
#include "attnjit/kernel_config.hpp"
#include "interface/decode_schedule.h"

namespace attnjit {

struct HostSchedule {
  std::vector<kernel_interface::SchedulePart> parts;  // [num_parts]
  std::vector<int> piece_offsets;                     // [batch + 1]
};

// Cuts requests of `seq_lens` keys and `seqlen_q` query tokens each into the parts of `grid`, as
// the kernel of `config` does.
HostSchedule make_host_schedule(std::span<const int> seq_lens, int seqlen_q,
                                const ScheduleConfig& config, const DecodeGrid& grid);

}  // namespace attnjit
