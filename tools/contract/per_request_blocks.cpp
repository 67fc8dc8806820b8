#include "per_request_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace attnjit::contract {

TensorView heads_first(const TensorView& cache) {
  return permuted_view(cache, {0, 2, 1, 3, 4});
}

TensorView per_request_table(const TensorView& block_table, const TensorView& cache,
                             CallMemory& memory, const DeviceStream& stream) {
  constexpr int no_block = 2147480000;
  const auto batch = static_cast<std::size_t>(block_table.shape[0]);
  const auto columns = static_cast<std::size_t>(block_table.shape[1]);
  const auto blocks = static_cast<std::size_t>(cache.shape[1]);
  const std::vector<int> ids = download_ids(block_table, stream);
  std::vector<int> table(batch * blocks, no_block);
  for (std::size_t b = 0; b < batch; ++b) {
    std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(b * columns), std::min(columns, blocks),
                table.begin() + static_cast<std::ptrdiff_t>(b * blocks));
  }
  return memory.upload(table, {block_table.shape[0], cache.shape[1]});
}

}  // namespace attnjit::contract
