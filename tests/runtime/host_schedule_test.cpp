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

ScheduleConfig schedule_config(int num_q_heads) {
  const auto configs =
      select_configs(test::latent_decode(num_q_heads), find_target_device("h200").value());
  return std::get<ScheduleConfig>(configs.back());
}

int num_busy_parts(const HostSchedule& schedule) {
  int busy = 0;
  for (const auto& part : schedule.parts) {
    busy += part.first_request < part.end_request || part.first_block < part.end_block ? 1 : 0;
  }
  return busy;
}

TEST_CASE("equal requests are not split where whole ones fill the device as well") {
  const HostSchedule schedule = make_host_schedule(Lengths(128, 4096), 1, schedule_config(128), 66);
  CHECK(schedule.piece_offsets.back() == 0);
  CHECK(num_busy_parts(schedule) == 64);
  const HostSchedule single = make_host_schedule(Lengths(128, 4096), 1, schedule_config(16), 132);
  CHECK(single.piece_offsets.back() == 0);
  CHECK(num_busy_parts(single) == 128);
}

TEST_CASE("fewer equal requests than parts are all split in the same places") {
  const HostSchedule schedule = make_host_schedule(Lengths(64, 4096), 1, schedule_config(16), 132);
  CHECK(schedule.piece_offsets.back() == 128);
  std::set<int> first_blocks;
  for (const auto& part : schedule.parts) {
    first_blocks.insert(part.first_block);
  }
  CHECK(first_blocks == std::set<int>{0, 32});
}

TEST_CASE("a short call with many rows is cut into fewer pieces than there are parts") {
  const HostSchedule schedule = make_host_schedule(Lengths{8192}, 1, schedule_config(64), 132);
  CHECK(schedule.piece_offsets.back() == 66);
}

TEST_CASE("a long request takes every part") {
  const HostSchedule schedule = make_host_schedule(Lengths{1 << 20}, 1, schedule_config(16), 132);
  CHECK(num_busy_parts(schedule) == 132);
}

TEST_CASE("a window's schedule counts visible keys only") {
  ScheduleConfig config = schedule_config(16);
  config.window_left = 4095;
  // The last 4096 keys, and a block more where the first of them is not the first of a block.
  const HostSchedule windowed = make_host_schedule(Lengths{1 << 20}, 1, config, 132);
  const HostSchedule shorter = make_host_schedule(Lengths{4096}, 1, schedule_config(16), 132);
  CHECK(windowed.piece_offsets == shorter.piece_offsets);
  CHECK(windowed.parts.front().call_blocks == 1 + 64);
  CHECK(make_host_schedule(Lengths{(1 << 20) + 1}, 1, config, 132).parts.front().call_blocks ==
        1 + 65);
  // Two queries see one key more together.
  CHECK(make_host_schedule(Lengths{1 << 20}, 2, config, 132).parts.front().call_blocks == 1 + 65);
}

}  // namespace
}  // namespace attnjit
