// The host's schedule: which of the cuttings it takes. That the cuts themselves are right is
// tests/templates/decode_schedule_test.cpp's; that the device cuts alike is `attnjit check`'s,
// which runs plans made on both.
#include "host_schedule.hpp"

#include <set>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

using Lengths = std::vector<int>;

ScheduleConfig schedule_config(int num_q_heads, bool batch_invariant = false) {
  AttentionDescriptor descriptor = test::latent_decode(num_q_heads);
  descriptor.batch_invariant = batch_invariant;
  return std::get<ScheduleConfig>(
      configure_decode(descriptor, find_target_device("h200").value(), {}).back());
}

// Pieces of each request.
Lengths pieces_of(const HostSchedule& schedule) {
  Lengths pieces;
  for (std::size_t b = 0; b + 1 < schedule.piece_offsets.size(); ++b) {
    pieces.push_back(schedule.piece_offsets[b + 1] - schedule.piece_offsets[b]);
  }
  return pieces;
}

int num_busy_parts(const HostSchedule& schedule) {
  int busy = 0;
  for (const auto& part : schedule.parts) {
    busy += part.first_request < part.end_request || part.first_block < part.end_block ? 1 : 0;
  }
  return busy;
}

TEST_CASE("equal requests are not split where whole ones fill the device as well") {
  const HostSchedule schedule =
      make_host_schedule(Lengths(128, 4096), 1, schedule_config(128), {.num_parts = 66});
  CHECK(schedule.piece_offsets.back() == 0);
  CHECK(num_busy_parts(schedule) == 64);
  const HostSchedule single =
      make_host_schedule(Lengths(128, 4096), 1, schedule_config(16), {.num_parts = 132});
  CHECK(single.piece_offsets.back() == 0);
  CHECK(num_busy_parts(single) == 128);
}

TEST_CASE("fewer equal requests than parts are all split in the same places") {
  const HostSchedule schedule =
      make_host_schedule(Lengths(64, 4096), 1, schedule_config(16), {.num_parts = 132});
  CHECK(schedule.piece_offsets.back() == 128);
  std::set<int> first_blocks;
  for (const auto& part : schedule.parts) {
    first_blocks.insert(part.first_block);
  }
  CHECK(first_blocks == std::set<int>{0, 32});
}

TEST_CASE("a short call with many rows is cut into fewer pieces than there are parts") {
  const HostSchedule schedule =
      make_host_schedule(Lengths{8192}, 1, schedule_config(64), {.num_parts = 132});
  CHECK(schedule.piece_offsets.back() == 66);
}

TEST_CASE("batch-invariant requests are cut alike alone and among others") {
  const ScheduleConfig config = schedule_config(16, true);
  const DecodeGrid grid = with_chunks({.num_parts = 132}, config, 64, 1 << 20);
  const Lengths lengths = {20000, 3, 0, 8192, 65536, 513};
  const HostSchedule together = make_host_schedule(lengths, 1, config, grid);
  const Lengths pieces = pieces_of(together);
  CHECK(pieces == Lengths{40, 0, 0, 16, 128, 2});  // chunks of 512 keys; one is no piece
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const HostSchedule alone = make_host_schedule(Lengths{lengths[b]}, 1, config, grid);
    CHECK(pieces_of(alone).front() == pieces[b]);
  }
  CHECK(num_busy_parts(together) > 90);
}

TEST_CASE("a batch-invariant request longer than its plan's longest keeps to the workspace") {
  const ScheduleConfig config = schedule_config(16, true);
  const DecodeGrid grid = with_chunks({.num_parts = 132}, config, 2, 1024);
  CHECK(grid.max_pieces == 4);
  const HostSchedule schedule = make_host_schedule(Lengths{100000, 100000}, 1, config, grid);
  CHECK(schedule.piece_offsets.back() == 4);
}

TEST_CASE("a long request takes every part") {
  const HostSchedule schedule =
      make_host_schedule(Lengths{1 << 20}, 1, schedule_config(16), {.num_parts = 132});
  CHECK(num_busy_parts(schedule) == 132);
}

TEST_CASE("a window's schedule counts visible keys only") {
  ScheduleConfig config = schedule_config(16);
  config.window_left = 4095;
  // The last 4096 keys, and a block more where the first of them is not the first of a block.
  const HostSchedule windowed = make_host_schedule(Lengths{1 << 20}, 1, config, {.num_parts = 132});
  const HostSchedule shorter =
      make_host_schedule(Lengths{4096}, 1, schedule_config(16), {.num_parts = 132});
  CHECK(windowed.piece_offsets == shorter.piece_offsets);
  CHECK(windowed.parts.front().call_blocks == 1 + 64);
  CHECK(make_host_schedule(Lengths{(1 << 20) + 1}, 1, config, {.num_parts = 132})
            .parts.front()
            .call_blocks == 1 + 65);
  // Two queries see one key more together.
  CHECK(make_host_schedule(Lengths{1 << 20}, 2, config, {.num_parts = 132})
            .parts.front()
            .call_blocks == 1 + 65);
}

}  // namespace
}  // namespace attnjit
