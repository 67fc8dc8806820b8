#include <algorithm>
#include <cstdint>

#include "attnjit/prefill.hpp"
#include "interface/paged_decode_arguments.h"
#include "prefill_arguments.hpp"
#include "prefill_grid.hpp"
#include "prefill_keys.hpp"

namespace attnjit {
namespace {

// Parts beyond these cost more than they save: a warp of the combine kernel has a lane for each,
// and a part wants some tiles of keys to begin and end with.
constexpr std::int64_t most_splits = 32;
constexpr std::int64_t least_tiles_of_part = 4;

// Keys of a request, as far as shapes tell: those of ragged tensors on average.
std::int64_t expected_keys(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  if (key_layout(descriptor) == KvLayout::paged) {
    return call.block_table.shape[1] * descriptor.page_size;
  }
  const std::int64_t extent = key_extent(descriptor, call);
  const std::int64_t batch = std::max<std::int64_t>(batch_of(call), 1);
  return key_layout(descriptor) == KvLayout::ragged ? (extent + batch - 1) / batch : extent;
}

// Of those, what a row tile sees at most: a window's keys and the tile's own.
std::int64_t expected_keys_of_tile(const PreparedPrefill& kernel, const PrefillCall& call) {
  const AttentionDescriptor& descriptor = kernel.descriptor;
  const std::int64_t keys = expected_keys(descriptor, call);
  if (descriptor.mask != MaskKind::sliding_window || descriptor.window_left < 0 ||
      descriptor.window_right < 0) {
    return keys;
  }
  const std::int64_t window = std::int64_t{descriptor.window_left} + descriptor.window_right;
  return std::min(keys, window + kernel.config.block_m);
}

// Thread blocks that run at the same time.
std::int64_t resident_blocks(const TargetDevice& target, const PrefillConfig& config) {
  constexpr int most_blocks = 2;  // of 255 registers for each of 128 threads
  const int by_memory = target.shared_memory_per_sm / std::max(config.shared_memory_bytes, 1);
  const int by_warps = config.num_warps <= 4 ? most_blocks : 1;
  return std::int64_t{target.num_sms} * std::clamp(by_memory, 1, by_warps);
}

}  // namespace

PrefillPlan plan_prefill(const PreparedPrefill& kernel, const PrefillCall& call) {
  check_prefill_call(kernel.descriptor, call);
  const std::int64_t blocks = count_row_tiles(kernel.config, call) * kernel.descriptor.num_kv_heads;
  PrefillPlan plan;
  // How many parts are right follows from what else is in the batch.
  if (blocks == 0 || kernel.descriptor.batch_invariant) {
    return plan;
  }
  const std::int64_t tiles =
      expected_keys_of_tile(kernel, call) / (kernel.config.block_n * least_tiles_of_part);
  const std::int64_t splits =
      std::min({resident_blocks(kernel.target, kernel.config) / blocks, tiles, most_splits});
  plan.num_splits = static_cast<int>(std::max<std::int64_t>(splits, 1));
  if (plan.num_splits > 1) {
    const std::int64_t row_bytes =
        std::int64_t{kernel.config.head_dim_v} * 4 +
        static_cast<std::int64_t>(sizeof(kernel_interface::PartialState));
    plan.workspace_bytes = plan.num_splits * partial_rows(kernel.descriptor, call) * row_bytes;
  }
  return plan;
}

}  // namespace attnjit
