// Barriers, register hand-over and dependent launches on the GPU: what they order is seen in order.
#include <vector>

#include "catch.hpp"
#include "unit_kernel.hpp"

namespace attnjit::sm90 {
namespace {

TEST_CASE("named barriers, register hand-over and cluster barriers order what they separate") {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  const UnitKernel kernel("synchronize", 384, 0);
  constexpr unsigned blocks = 8;
  const DeviceBuffer sums = upload(std::vector<int>(blocks), stream);
  const DeviceBuffer ranks = upload(std::vector<unsigned>(blocks, 9), stream);
  SynchronizeArguments arguments{};
  arguments.sums = static_cast<int*>(sums.data());
  arguments.ranks = static_cast<unsigned*>(ranks.data());
  kernel.launch(blocks, &arguments, stream);
  // Two readers of 64 rounds of values 0 to 127 plus the round.
  constexpr int sum = 2 * (64 * (127 * 128 / 2) + 128 * (63 * 64 / 2));
  CHECK(download_values<int>(sums, blocks, stream.handle()) == std::vector<int>(blocks, sum));
  CHECK(download_values<unsigned>(ranks, blocks, stream.handle()) ==
        std::vector<unsigned>{0, 1, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("a dependent launch that waits sees what the launch before it wrote") {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  const UnitKernel kernel("increment", 128, 0);
  constexpr unsigned blocks = 16;
  const DeviceBuffer values = upload(std::vector<int>(blocks * 128), stream);
  constexpr unsigned launches = 200;
  for (unsigned i = 0; i < launches; ++i) {
    IncrementArguments arguments{};
    arguments.values = static_cast<int*>(values.data());
    arguments.shift = i;
    kernel.launch(blocks, &arguments, stream, LaunchOrder::overlapping_previous);
  }
  CHECK(download_values<int>(values, blocks * 128, stream.handle()) ==
        std::vector<int>(blocks * 128, launches));
}

}  // namespace
}  // namespace attnjit::sm90
