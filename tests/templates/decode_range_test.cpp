// templates/device/decode_range.cuh under the host compiler, for a sliding window: whatever the
// lengths were when the schedule was made, every row tile takes each block that it sees once.
#include <algorithm>

#define __device__
#define __forceinline__ inline
using std::max;
using std::min;
#include "device/decode_range.cuh"

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"

namespace {

using namespace attnjit::kernel_interface;
using Lengths = std::vector<int>;

constexpr int block_n = 32;

struct Schedule {
  std::vector<int> piece_offsets = {0};
  std::vector<SchedulePart> parts;
};

Schedule make_schedule(const Lengths& seq_lens, int seqlen_q, int num_parts) {
  const int batch = static_cast<int>(seq_lens.size());
  std::vector<long long> offsets = {0};
  for (const int length : seq_lens) {
    const int visible = visible_length(length, seqlen_q, config::window_left, block_n);
    offsets.push_back(offsets.back() + request_units(visible, block_n));
  }
  const long long per_part = units_per_part(offsets.back(), num_parts);
  Schedule schedule;
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    const int pieces = num_pieces_of(offsets[b], offsets[b + 1], per_part);
    schedule.piece_offsets.push_back(schedule.piece_offsets.back() + (pieces > 1 ? pieces : 0));
  }
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_part(offsets.data(), batch, per_part, part));
  }
  return schedule;
}

// How often each block of a request is taken by the row tile of `queries`.
std::vector<int> count_takes(const Schedule& schedule, const Lengths& seq_lens, int request,
                             const QueryRange& queries, int seqlen_q) {
  const int length = seq_lens[static_cast<std::size_t>(request)];
  std::vector<int> takes(static_cast<std::size_t>(num_kv_blocks(length, block_n)), 0);
  for (const SchedulePart& part : schedule.parts) {
    if (request < part.first_request || request >= end_request_of(part)) {
      continue;
    }
    const DecodeRange range =
        decode_range(part, {request, 0}, seq_lens.data(), schedule.piece_offsets.data(), queries,
                     seqlen_q, block_n);
    for (int block = range.first_block; block < range.end_block; ++block) {
      takes.at(static_cast<std::size_t>(block)) += 1;
    }
  }
  return takes;
}

// By the definition: 1 for blocks with a key that one of `queries` sees. A tile may take blocks
// between those that it sees, but there are none: windows of neighbours overlap.
std::vector<int> seen_blocks(int length, const QueryRange& queries, int seqlen_q) {
  std::vector<int> seen(static_cast<std::size_t>(num_kv_blocks(length, block_n)), 0);
  for (int query = queries.first; query <= queries.last; ++query) {
    const int position = length - seqlen_q + query;
    for (int key = 0; key < length; ++key) {
      const bool is_visible =
          key >= position - config::window_left && key <= position + config::window_right;
      seen[static_cast<std::size_t>(key / block_n)] |= is_visible ? 1 : 0;
    }
  }
  return seen;
}

std::string find_fault(const Lengths& planned, const Lengths& actual, int seqlen_q, int num_parts) {
  constexpr int tile_rows = 16;
  const Schedule schedule = make_schedule(planned, seqlen_q, num_parts);
  const int rows = seqlen_q * config::q_per_kv;
  for (int first_row = 0; first_row < rows; first_row += tile_rows) {
    const QueryRange queries = queries_of_rows(first_row, min(first_row + tile_rows, rows));
    for (int request = 0; request < static_cast<int>(actual.size()); ++request) {
      const int length = actual[static_cast<std::size_t>(request)];
      if (count_takes(schedule, actual, request, queries, seqlen_q) !=
          seen_blocks(length, queries, seqlen_q)) {
        return fmt::format("{} keys, planned as {}, {} queries, rows from {}", length,
                           planned[static_cast<std::size_t>(request)], seqlen_q, first_row);
      }
    }
  }
  return "";
}

TEST_CASE(
    "every row tile takes the blocks its queries see once and no others, with stale plans too") {
  std::mt19937 random(7);
  constexpr int edges[] = {0, 1, 2, 31, 32, 33, 100, 101, 102, 103, 128, 129, 700, 1500};
  const auto draw = [&](int batch) {
    Lengths lengths;
    for (int b = 0; b < batch; ++b) {
      lengths.push_back(edges[random() % std::size(edges)]);
    }
    return lengths;
  };
  std::vector<std::string> faults;
  for (const int seqlen_q : {1, 2, 5, 64, 128}) {
    for (const int batch : {1, 2, 9}) {
      for (const int num_parts : {1, 2, 7, 40}) {
        for (int repetition = 0; repetition < 4; ++repetition) {
          const Lengths lengths = draw(batch);
          for (const Lengths& planned : {lengths, draw(batch)}) {
            const std::string fault = find_fault(planned, lengths, seqlen_q, num_parts);
            if (!fault.empty()) {
              faults.push_back(fault);
            }
          }
        }
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

}  // namespace
