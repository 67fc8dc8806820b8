// Expected values are those of the CUDA occupancy rules, as the vendor's calculator gives them.
#include "occupancy.hpp"

#include <string>

#include "catch.hpp"

namespace attnjit {
namespace {

Occupancy on(const char* card, int threads, int registers, int shared_bytes) {
  return calculate_occupancy({threads, registers, shared_bytes}, find_target_device(card).value())
      .value();
}

}  // namespace

TEST_CASE("blocks are limited by the warps that a multiprocessor holds") {
  CHECK(on("a100", 256, 32, 0).blocks == 8);
  CHECK(on("a100", 256, 32, 0).warps == 64);
  CHECK(on("a100", 1024, 32, 0).blocks == 2);
  CHECK(on("rtx3090", 1024, 32, 0).blocks == 1);
  CHECK(on("rtx4090", 256, 32, 0).blocks == 6);
  CHECK(on("rtx4090", 256, 32, 0).most_warps == 48);
  CHECK(on("h200", 256, 32, 0).limit == "warps");
}

TEST_CASE("blocks are limited by their number where they are small") {
  CHECK(on("a100", 32, 16, 0).blocks == 32);
  CHECK(on("rtx3090", 32, 16, 0).blocks == 16);
  CHECK(on("rtx4090", 32, 16, 0).blocks == 24);
  CHECK(on("b200", 32, 16, 0).blocks == 32);
  CHECK(on("rtx5090", 32, 16, 0).blocks == 24);
  CHECK(on("h200", 32, 16, 0).limit == "blocks");
}

TEST_CASE("registers are given to warps in units of 256 and lie in four partitions") {
  CHECK(on("a100", 256, 255, 0).blocks == 1);  // 8160 a warp are 8192: two warps a partition
  CHECK(on("a100", 256, 128, 0).blocks == 2);
  CHECK(on("a100", 256, 129, 0).blocks == 1);  // 4352 a warp: 3 a partition, 12 in all
  CHECK(on("a100", 128, 168, 0).blocks == 3);  // 5376 a warp: 3 a partition
  CHECK(on("a100", 96, 168, 0).blocks == 4);   // the same 12 warps
  CHECK(on("h200", 384, 168, 0).blocks == 1);
  CHECK(on("h200", 384, 168, 0).limit == "registers");
  CHECK(on("a100", 1024, 128, 0).blocks == 0);  // does not fit at all
}

TEST_CASE("shared memory counts with the kilobyte that each block reserves") {
  CHECK(on("a100", 128, 32, 48 * 1024).blocks == 3);   // 49 KB each of 164
  CHECK(on("a100", 128, 32, 163 * 1024).blocks == 1);  // the most that a block may have
  CHECK(on("h200", 128, 32, 227 * 1024).blocks == 1);
  CHECK(on("h200", 128, 32, 75 * 1024).blocks == 3);
  CHECK(on("rtx4090", 128, 32, 49 * 1024).blocks == 2);
  CHECK(on("h200", 128, 32, 75 * 1024).limit == "shared memory");
  CHECK(on("h200", 128, 32, 75 * 1024 + 1).blocks == 2);
}

TEST_CASE("of an unknown architecture nothing is said") {
  TargetDevice device = find_target_device("h200").value();
  device.compute_capability = 75;
  CHECK(!calculate_occupancy({128, 32, 0}, device).has_value());
  KernelMetadata metadata;
  metadata.arch = "sm_999";
  CHECK(!calculate_occupancy(metadata).has_value());
}

}  // namespace attnjit
