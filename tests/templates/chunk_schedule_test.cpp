// templates/interface/chunk_schedule.h under the host compiler: whatever is in a batch, a request
// is cut in the same places, every chunk belongs to one part, and parts have equal shares.
#include "interface/chunk_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using namespace attnjit::kernel_interface;
using Lengths = std::vector<int>;

constexpr int block_n = 64;

struct Schedule {
  std::vector<long long> unit_offsets = {0};
  std::vector<int> chunks;  // of each request
  std::vector<SchedulePart> parts;
};

Schedule make_schedule(const Lengths& seq_lens, int num_parts, const ChunkRule& rule) {
  Schedule schedule;
  for (const int length : seq_lens) {
    schedule.unit_offsets.push_back(schedule.unit_offsets.back() + request_units(length, block_n));
    schedule.chunks.push_back(
        num_chunks_of(schedule.unit_offsets.end()[-2], schedule.unit_offsets.back(), rule));
  }
  const long long per_part = units_per_part(schedule.unit_offsets.back(), num_parts);
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_chunk_part(
        schedule.unit_offsets.data(), static_cast<int>(seq_lens.size()), per_part, part, rule));
  }
  return schedule;
}

// The chunks that `part` holds, as kernels take them: request and index within it.
std::vector<std::pair<int, int>> chunks_of(const Schedule& schedule, const SchedulePart& part,
                                           const ChunkRule& rule) {
  std::vector<std::pair<int, int>> chunks;
  const int end_request = part.end_block > 0 ? part.end_request + 1 : part.end_request;
  for (int request = part.first_request; request < end_request; ++request) {
    const int first = request == part.first_request ? part.first_piece : 0;
    const int end = request == part.end_request && part.end_block > 0
                        ? part.end_block / rule.blocks
                        : schedule.chunks.at(static_cast<std::size_t>(request));
    for (int chunk = first; chunk < end; ++chunk) {
      chunks.emplace_back(request, chunk);
    }
  }
  return chunks;
}

// "" if the parts hold every chunk once, in order, and none much more than its share.
std::string find_fault(const Lengths& seq_lens, int num_parts, const ChunkRule& rule) {
  const Schedule schedule = make_schedule(seq_lens, num_parts, rule);
  const auto fault = [&](std::string_view what) {
    return fmt::format("batch {} parts {} chunks of {}: {}", seq_lens.size(), num_parts,
                       rule.blocks, what);
  };
  std::vector<std::pair<int, int>> all;
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    for (int chunk = 0; chunk < schedule.chunks[b]; ++chunk) {
      all.emplace_back(static_cast<int>(b), chunk);
    }
  }
  std::vector<std::pair<int, int>> held;
  const long long share = units_per_part(schedule.unit_offsets.back(), num_parts);
  for (const SchedulePart& part : schedule.parts) {
    long long units = 0;
    for (const auto& [request, chunk] : chunks_of(schedule, part, rule)) {
      held.emplace_back(request, chunk);
      const int blocks = num_kv_blocks(seq_lens[static_cast<std::size_t>(request)], block_n);
      const int first = chunk * rule.blocks;
      const bool is_last = chunk + 1 == schedule.chunks[static_cast<std::size_t>(request)];
      units += block_units * (is_last ? blocks - first : rule.blocks);
    }
    const bool is_uncapped = rule.most == 2147483647;
    if (is_uncapped && units > share + rule.blocks * block_units) {
      return fault("a part has more than a chunk too much");
    }
    if (part.first_block != part.first_piece * rule.blocks) {
      return fault("a part's first block is not its first chunk's");
    }
  }
  return held == all ? "" : fault("a chunk is not held exactly once, in order");
}

TEST_CASE("parts hold every chunk of every request once, and even shares of them") {
  std::mt19937 random(7);
  std::vector<std::string> faults;
  for (const int batch : {1, 2, 3, 7, 64, 300}) {
    for (const int num_parts : {1, 2, 5, 78, 132, 600}) {
      for (const ChunkRule& rule : {ChunkRule{1, 2147483647}, ChunkRule{8, 2147483647},
                                    ChunkRule{16, 2147483647}, ChunkRule{8, 5}}) {
        Lengths lengths;
        for (int b = 0; b < batch; ++b) {
          constexpr int edges[] = {0, 1, 64, 512, 513, 1024, 1025, 20000};
          lengths.push_back(random() % 2 == 0 ? edges[random() % 8]
                                              : static_cast<int>(random() % 9000));
        }
        const std::string fault = find_fault(lengths, num_parts, rule);
        if (!fault.empty()) {
          faults.push_back(fault);
        }
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

TEST_CASE("a request has as many chunks alone as among others") {
  const ChunkRule rule = {8, 2147483647};
  const Lengths lengths = {0, 512, 513, 5000, 1, 70000};
  const Schedule together = make_schedule(lengths, 132, rule);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    CHECK(make_schedule({lengths[b]}, 132, rule).chunks.front() == together.chunks[b]);
  }
  CHECK(together.chunks == std::vector<int>{1, 1, 2, 10, 1, 137});
}

TEST_CASE("a request longer than there is workspace for gets a longer last chunk, not more") {
  const Schedule schedule = make_schedule({5000}, 132, {8, 4});
  CHECK(schedule.chunks == std::vector<int>{4});
}

TEST_CASE("three chunks over two parts are cut as by hand") {
  // In blocks: a start and 20 blocks, 10.5 a part. Chunk 1 begins at 1 + 8, chunk 2 at 17.
  const Schedule schedule = make_schedule({20 * 64}, 2, {8, 2147483647});
  CHECK(schedule.parts[0].first_block == 0);
  CHECK(schedule.parts[0].end_request == 0);
  CHECK(schedule.parts[0].end_block == 16);
  CHECK(schedule.parts[1].first_block == 16);
  CHECK(schedule.parts[1].first_piece == 2);
  CHECK(schedule.parts[1].end_request == 1);
  CHECK(schedule.parts[1].end_block == 0);
}

TEST_CASE("a part in which no chunk begins has no work") {
  const Schedule schedule = make_schedule({20 * 64}, 7, {8, 2147483647});  // three blocks a part
  const SchedulePart& idle = schedule.parts[1];
  CHECK(idle.first_request == idle.end_request);
  CHECK(idle.first_block == 0);
  CHECK(idle.end_block == 0);
}

}  // namespace
