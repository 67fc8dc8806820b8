// templates/interface/decode_schedule.h under the host compiler, against a walk over the line of
// units one by one and against a model of how kernels/paged_decode_sm80.cu reads its part.
#include "interface/decode_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using namespace attnjit::kernel_interface;

struct Schedule {
  std::vector<long long> unit_offsets;
  std::vector<int> piece_offsets;
  std::vector<SchedulePart> parts;
  long long per_part = 0;
};

Schedule make_schedule(const std::vector<int>& seq_lens, int block_n, int num_parts,
                       int cutting = 0) {
  Schedule schedule;
  schedule.unit_offsets = {0};
  for (const int length : seq_lens) {
    schedule.unit_offsets.push_back(schedule.unit_offsets.back() + request_units(length, block_n));
  }
  schedule.per_part = units_per_part(schedule.unit_offsets.back(),
                                     static_cast<int>(seq_lens.size()), num_parts, cutting);
  schedule.piece_offsets = {0};
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    const int pieces =
        num_pieces_of(schedule.unit_offsets[b], schedule.unit_offsets[b + 1], schedule.per_part);
    schedule.piece_offsets.push_back(schedule.piece_offsets.back() + (pieces > 1 ? pieces : 0));
  }
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_part(schedule.unit_offsets.data(),
                                       static_cast<int>(seq_lens.size()), schedule.per_part, part));
  }
  return schedule;
}

// One request as one part computes it.
struct Visit {
  int part;
  int request;
  int first_block;
  int end_block;
  int piece;  // among all partial results, -1 = writes the output itself
};

// As the entry of kernels/paged_decode_sm80.cu, with lengths that may have changed since.
std::vector<Visit> visits_of(const Schedule& schedule, const std::vector<int>& seq_lens,
                             int block_n) {
  std::vector<Visit> visits;
  for (std::size_t index = 0; index < schedule.parts.size(); ++index) {
    const SchedulePart& part = schedule.parts[index];
    for (int request = part.first_request; request <= part.end_request; ++request) {
      const bool is_end = request == part.end_request;
      if (is_end && part.end_block == 0) {
        break;
      }
      const std::size_t b = static_cast<std::size_t>(request);
      const int blocks = num_kv_blocks(seq_lens.at(b), block_n);
      const int first_piece = schedule.piece_offsets.at(b);
      const bool is_split = schedule.piece_offsets.at(b + 1) > first_piece;
      const int piece = request == part.first_request ? part.first_piece : 0;
      visits.push_back({static_cast<int>(index), request,
                        request == part.first_request ? part.first_block : 0,
                        is_end && part.end_block < blocks ? part.end_block : blocks,
                        is_split ? first_piece + piece : -1});
    }
  }
  return visits;
}

// What the visits get wrong, "" if every block is computed once and every result has its place.
std::string find_fault(const Schedule& schedule, const std::vector<int>& seq_lens, int block_n) {
  std::vector<std::vector<int>> times(seq_lens.size());
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    times[b].assign(static_cast<std::size_t>(num_kv_blocks(seq_lens[b], block_n)), 0);
  }
  std::vector<int> direct_writes(seq_lens.size(), 0);
  std::vector<int> piece_writes(static_cast<std::size_t>(schedule.piece_offsets.back()), 0);
  for (const Visit& visit : visits_of(schedule, seq_lens, block_n)) {
    const std::size_t b = static_cast<std::size_t>(visit.request);
    for (int block = visit.first_block; block < visit.end_block; ++block) {
      times[b].at(static_cast<std::size_t>(block)) += 1;
    }
    if (visit.piece < 0) {
      direct_writes[b] += 1;
    } else if (visit.piece < schedule.piece_offsets[b] ||
               visit.piece >= schedule.piece_offsets[b + 1]) {
      return fmt::format("request {} writes piece {} of another request", b, visit.piece);
    } else {
      piece_writes[static_cast<std::size_t>(visit.piece)] += 1;
    }
  }
  for (std::size_t b = 0; b < seq_lens.size(); ++b) {
    const bool is_split = schedule.piece_offsets[b + 1] > schedule.piece_offsets[b];
    if (std::any_of(times[b].begin(), times[b].end(), [](int count) { return count != 1; })) {
      return fmt::format("a block of request {} is not computed exactly once", b);
    }
    if (direct_writes[b] != (is_split ? 0 : 1)) {
      return fmt::format("request {} is written {} times", b, direct_writes[b]);
    }
  }
  const bool all_once =
      std::all_of(piece_writes.begin(), piece_writes.end(), [](int count) { return count == 1; });
  return all_once ? "" : "a partial result is not written exactly once";
}

// What the schedule itself promises beyond its visits.
std::string find_broken_bound(const Schedule& schedule, const std::vector<int>& seq_lens,
                              int block_n, int num_parts) {
  if (schedule.piece_offsets.back() > 2 * num_parts) {
    return "more than two pieces of split requests per part";
  }
  std::vector<int> blocks(schedule.parts.size(), 0);
  std::vector<int> starts(schedule.parts.size(), 0);
  std::vector<int> next_piece(seq_lens.size(), 0);
  for (const Visit& visit : visits_of(schedule, seq_lens, block_n)) {
    const std::size_t b = static_cast<std::size_t>(visit.request);
    if (visit.first_block >= visit.end_block) {
      return fmt::format("part {} visits request {} for nothing", visit.part, visit.request);
    }
    if (visit.piece >= 0 && visit.piece != schedule.piece_offsets[b] + next_piece[b]++) {
      return fmt::format("pieces of request {} are not numbered in order", visit.request);
    }
    blocks[static_cast<std::size_t>(visit.part)] += visit.end_block - visit.first_block;
    starts[static_cast<std::size_t>(visit.part)] += visit.first_block == 0 ? 1 : 0;
  }
  // A cut may fall into a block, which belongs to the part before, and into a start.
  constexpr long long slack = block_units + start_units;
  for (std::size_t part = 0; part < blocks.size(); ++part) {
    const long long units = static_cast<long long>(blocks[part]) * block_units +
                            static_cast<long long>(starts[part]) * start_units;
    const long long begin = static_cast<long long>(part) * schedule.per_part;
    const bool is_full = begin + schedule.per_part <= schedule.unit_offsets.back();
    if (is_full && units < schedule.per_part - slack) {
      return fmt::format("part {} has only {} of {} units", part, units, schedule.per_part);
    }
    if (units > schedule.per_part + slack) {
      return fmt::format("part {} has {} units of {}", part, units, schedule.per_part);
    }
  }
  return "";
}

using Lengths = std::vector<int>;

std::string check_schedule(const Lengths& seq_lens, int block_n, int num_parts) {
  for (int cutting = 0; cutting < num_cuttings; ++cutting) {
    const Schedule schedule = make_schedule(seq_lens, block_n, num_parts, cutting);
    std::string fault = find_fault(schedule, seq_lens, block_n);
    if (fault.empty()) {
      fault = find_broken_bound(schedule, seq_lens, block_n, num_parts);
    }
    if (!fault.empty()) {
      return fmt::format("batch {} block_n {} parts {} cutting {}: {}", seq_lens.size(), block_n,
                         num_parts, cutting, fault);
    }
  }
  return "";
}

// Lengths of every kind at once: empty, shorter than a block, at a block's edge, long.
class RandomLengths {
 public:
  Lengths draw(int batch) {
    constexpr int edges[] = {0, 0, 1, 31, 32, 33, 63, 64, 65, 128, 1000, 4096, 200000};
    const int kind = pick(3);
    Lengths lengths;
    for (int b = 0; b < batch; ++b) {
      lengths.push_back(kind == 0   ? edges[pick(12)]
                        : kind == 1 ? pick(3000)
                                    : pick(batch > 100 ? 700 : 20000));
    }
    return lengths;
  }
  int pick(int largest) { return std::uniform_int_distribution<int>(0, largest)(engine_); }

 private:
  std::mt19937 engine_{20};
};

TEST_CASE("any batch is cut so that every block is computed once and every piece has its place") {
  RandomLengths random;
  std::vector<std::string> faults;
  for (const int batch : {1, 2, 3, 6, 7, 64, 129, 1000}) {
    for (const int num_parts : {1, 2, 3, 5, 78, 132, 264, 600}) {
      for (const int block_n : {32, 64}) {
        for (int repetition = 0; repetition < 3; ++repetition) {
          const std::string fault = check_schedule(random.draw(batch), block_n, num_parts);
          if (!fault.empty()) {
            faults.push_back(fault);
          }
        }
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

TEST_CASE("every small batch over every number of parts is cut rightly") {
  std::vector<std::string> faults;
  for (int code = 0; code < 6 * 6 * 6 * 6; ++code) {
    const Lengths lengths = {code % 6 * 32, code / 6 % 6 * 32, code / 36 % 6 * 32, code / 216 * 32};
    for (int num_parts = 1; num_parts <= 12; ++num_parts) {
      const std::string fault = check_schedule(lengths, 32, num_parts);
      if (!fault.empty()) {
        faults.push_back(fault);
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

TEST_CASE("a batch of empty requests still visits each request once") {
  for (const int batch : {1, 5, 1000}) {
    for (const int num_parts : {1, 7, 600}) {
      CHECK(check_schedule(Lengths(static_cast<std::size_t>(batch), 0), 64, num_parts) == "");
    }
  }
}

TEST_CASE("lengths that changed after the schedule was made are still computed exactly once") {
  RandomLengths random;
  std::vector<std::string> faults;
  for (const int batch : {1, 2, 7, 64, 300}) {
    for (const int num_parts : {1, 2, 78, 132, 600}) {
      for (int repetition = 0; repetition < 4; ++repetition) {
        const Schedule schedule = make_schedule(random.draw(batch), 32, num_parts);
        const std::string fault = find_fault(schedule, random.draw(batch), 32);
        if (!fault.empty()) {
          faults.push_back(fmt::format("batch {} parts {}: {}", batch, num_parts, fault));
        }
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

// Along the line: which part each block begins in.
std::vector<int> parts_of_blocks(const Lengths& seq_lens, int block_n, long long per_part) {
  std::vector<int> parts;
  long long unit = 0;
  for (const int length : seq_lens) {
    unit += start_units;
    for (int block = 0; block < num_kv_blocks(length, block_n); ++block) {
      parts.push_back(static_cast<int>(unit / per_part));
      unit += block_units;
    }
  }
  return parts;
}

TEST_CASE("the cuts are those of a walk along the line") {
  RandomLengths random;
  for (const int batch : {1, 3, 20}) {
    for (const int num_parts : {1, 4, 9, 132}) {
      const Lengths lengths = random.draw(batch);
      const Schedule schedule = make_schedule(lengths, 64, num_parts);
      std::vector<int> parts;
      for (const Visit& visit : visits_of(schedule, lengths, 64)) {
        parts.insert(parts.end(), static_cast<std::size_t>(visit.end_block - visit.first_block),
                     visit.part);
      }
      CHECK(parts == parts_of_blocks(lengths, 64, schedule.per_part));
    }
  }
}

TEST_CASE("two requests over three parts are cut as by hand") {
  // In blocks: request 0 takes 1 + 4, request 1 takes 1 + 1; seven in all, 2 1/3 a part. Blocks 0
  // and 1 of request 0 begin at 1 and 2, block 2 at 3, block 3 at 4, the block of request 1 at 6.
  const Schedule schedule = make_schedule({4 * 64, 5}, 64, 3);
  CHECK(schedule.per_part == (7 * block_units + 2) / 3);
  CHECK(schedule.piece_offsets == std::vector<int>{0, 2, 2});
  const SchedulePart& first = schedule.parts[0];
  CHECK(first.first_request == 0);
  CHECK(first.first_block == 0);
  CHECK(first.end_request == 0);
  CHECK(first.end_block == 2);
  const SchedulePart& second = schedule.parts[1];
  CHECK(second.first_request == 0);
  CHECK(second.first_block == 2);
  CHECK(second.first_piece == 1);
  CHECK(second.end_request == 1);
  CHECK(second.end_block == 0);
  const SchedulePart& third = schedule.parts[2];
  CHECK(third.first_request == 1);
  CHECK(third.first_block == 0);
  CHECK(third.end_request == 2);
  CHECK(third.end_block == 0);
}

TEST_CASE("requests of equal length are cut alike by the second cutting") {
  // More parts than requests: each request into as many pieces as go evenly.
  const Schedule four = make_schedule(Lengths(16, 8192), 64, 132, 1);
  CHECK(four.piece_offsets.back() == 16 * 8);
  for (const Visit& visit : visits_of(four, Lengths(16, 8192), 64)) {
    CHECK(visit.end_block - visit.first_block == 16);
  }
  // Fewer: whole requests, none of them split.
  const Schedule whole = make_schedule(Lengths(128, 4096), 64, 66, 1);
  CHECK(whole.piece_offsets.back() == 0);
  CHECK(whole.parts[63].end_request == 128);
  CHECK(whole.parts[64].first_request == 128);
}

TEST_CASE("pieces, and parts that begin within a request, cost something") {
  constexpr ScheduleCosts costs = {1000, 100};
  const long long none = cutting_units(6400, 10, 640, 0, costs);
  CHECK(none == 640);
  CHECK(cutting_units(6400, 10, 640, 5, costs) == 640 + start_units + combine_units + 500);
  // Where memory is the bound, ten parts of 640 take as long as eight of 800.
  constexpr ScheduleCosts from_memory = {1000, 75};
  CHECK(cutting_units(6400, 10, 800, 0, from_memory) == 640);
  CHECK(cutting_units(6400, 10, 800, 0, costs) == 800);
}

TEST_CASE("a length at the edge of a block takes no block more than it fills") {
  CHECK(num_kv_blocks(0, 64) == 1);
  CHECK(num_kv_blocks(1, 64) == 1);
  CHECK(num_kv_blocks(64, 64) == 1);
  CHECK(num_kv_blocks(65, 64) == 2);
  CHECK(num_kv_blocks(2147483647, 32) == 67108864);
  CHECK(request_units(2147483647, 32) == start_units + 67108864LL * block_units);
}

TEST_CASE("the first visible key is that of the earliest query, and 0 where all are visible") {
  CHECK(first_visible_key(1000, 1, -1) == 0);
  CHECK(first_visible_key(1000, 1, 0) == 999);
  CHECK(first_visible_key(1000, 1, 127) == 872);
  CHECK(first_visible_key(1000, 4, 127) == 869);
  CHECK(first_visible_key(128, 1, 127) == 0);
  CHECK(first_visible_key(129, 1, 127) == 1);
  CHECK(first_visible_key(0, 1, 0) == 0);
  CHECK(first_visible_key(3, 128, 5) == 0);  // fewer keys than queries
  CHECK(first_visible_key(2147483647, 1, 2147483647) == 0);
  CHECK(first_visible_key(2147483647, 128, 0) == 2147483647 - 128);
}

TEST_CASE("a schedule cuts whole blocks from that of the first visible key on") {
  CHECK(visible_length(1000, 1, -1, 64) == 1000);
  CHECK(visible_length(1000, 1, 127, 64) == 1000 - 13 * 64);  // key 872 is in block 13
  CHECK(visible_length(1024, 1, 127, 64) == 128);
  CHECK(visible_length(1025, 1, 127, 64) == 129);
  CHECK(visible_length(1000, 1, 0, 64) == 1000 - 15 * 64);
  CHECK(visible_length(0, 4, 127, 64) == 0);
}

TEST_CASE("a part without work starts and ends past the last request") {
  const Schedule schedule = make_schedule({64}, 64, 4);
  CHECK(schedule.per_part == block_units);    // never less, or a piece would have no block
  CHECK(schedule.parts[0].end_request == 0);  // nothing but the request's start
  CHECK(schedule.parts[0].end_block == 0);
  CHECK(schedule.parts[1].first_request == 0);
  CHECK(schedule.parts[1].end_request == 1);
  for (int part = 2; part < 4; ++part) {
    const SchedulePart& idle = schedule.parts[static_cast<std::size_t>(part)];
    CHECK(idle.first_request == 1);
    CHECK(idle.end_request == 1);
    CHECK(idle.first_block == idle.end_block);
  }
}

}  // namespace
