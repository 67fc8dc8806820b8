// The launch grid of decode: how parts fill a device, and what no grid can be made for.
#include "attnjit/decode_grid.hpp"

#include <functional>
#include <limits>
#include <vector>

#include "attnjit/argument_error.hpp"
#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

TargetDevice h200() {
  return find_target_device("h200").value();
}

DecodeTile latent_tile(int num_q_heads) {
  return decode_tile(configure_decode(test::latent_decode(num_q_heads), h200(), {}).front());
}

TEST_CASE("parts fill every multiprocessor of the device") {
  const DecodeGrid few = make_decode_grid(latent_tile(16), h200(), 1, 1);
  CHECK(few.num_parts == 132);
  CHECK(few.row_tiles == 1);
  const DecodeGrid many = make_decode_grid(latent_tile(128), h200(), 1, 1);
  CHECK(many.row_tiles == 2);
  CHECK(many.num_parts == 66);
}

TEST_CASE("a grid that fills a device unevenly takes another wave where that gains") {
  DecodeTile tile = latent_tile(128);
  const DecodeGrid grid = make_decode_grid(tile, h200(), 50, 1);  // 100 thread blocks a part
  CHECK(grid.num_parts == 5);  // 500 of 528 slots in four waves, against 100 of 132 in one
}

TEST_CASE("workspace holds two pieces per part, of whole tiles, with a state for each row") {
  const DecodeGrid grid = make_decode_grid(latent_tile(12), h200(), 1, 1);
  CombineConfig transposed = {DataType::bf16, 512, PartialOrder::transposed, 16};
  CHECK(workspace_bytes(grid, transposed) == std::int64_t{2} * 132 * 16 * (512 * 2 + 8));
  CHECK(lines_per_request(grid, transposed) == 16 * 512 / 128);
  const DecodeGrid tall = make_decode_grid(latent_tile(80), h200(), 1, 1);  // two tiles of 64
  const CombineConfig accumulators = {DataType::bf16, 256, PartialOrder::accumulators, 64};
  CHECK(workspace_bytes(tall, accumulators) == std::int64_t{2} * 66 * 128 * (256 * 2 + 8));
  // One row a tile, padded to whole lines of 128 columns.
  const CombineConfig rows = {DataType::bf16, 80, PartialOrder::rows, 1};
  CHECK(workspace_bytes(grid, rows) == std::int64_t{2} * 132 * 12 * (128 * 2 + 8));
  CHECK(lines_per_request(grid, rows) == 12);
}

TEST_CASE("a batch-invariant workspace holds every chunk of every request") {
  AttentionDescriptor descriptor = test::latent_decode(16);
  descriptor.batch_invariant = true;
  const auto configs = configure_decode(descriptor, h200(), {});
  const auto& combine = std::get<CombineConfig>(configs[1]);
  const auto& schedule = std::get<ScheduleConfig>(configs[2]);
  const DecodeGrid grid = make_decode_grid(decode_tile(configs[0]), h200(), 1, 1);
  const DecodeGrid chunked = with_chunks(grid, schedule, 10, 8193);
  CHECK(chunked.most_chunks == 17);  // of 512 keys
  CHECK(workspace_bytes(chunked, combine) == std::int64_t{10} * 17 * 16 * (512 * 2 + 2 * 4));
  CHECK(with_chunks(grid, schedule, 10, 1).most_chunks == 1);
}

TEST_CASE("sizes that no tile, device or call has are refused, never divided by") {
  constexpr int huge = std::numeric_limits<int>::max();
  const DecodeTile tile = latent_tile(16);
  CHECK_THROWS_AS(make_decode_grid(DecodeTile{}, h200(), 1, 1), ArgumentError);
  CHECK_THROWS_AS(make_decode_grid(tile, TargetDevice{}, 1, 1), ArgumentError);
  for (const int value : {0, -8, huge}) {
    CHECK_THROWS_AS(make_decode_grid(tile, h200(), value, 1), ArgumentError);
    CHECK_THROWS_AS(make_decode_grid(tile, h200(), 1, value), ArgumentError);
    TargetDevice device = h200();
    device.num_sms = value;
    CHECK_THROWS_AS(make_decode_grid(tile, device, 1, 1), ArgumentError);
    DecodeTile odd = tile;
    odd.shared_memory_bytes = value;
    CHECK_THROWS_AS(make_decode_grid(odd, h200(), 1, 1), ArgumentError);
  }
}

}  // namespace
}  // namespace attnjit
