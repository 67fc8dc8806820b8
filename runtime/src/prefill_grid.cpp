#include "prefill_grid.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "interface/prefill_arguments.h"
#include "prefill_arguments.hpp"
#include "tensor_checks.hpp"

namespace attnjit {

std::int64_t count_row_tiles(const PrefillConfig& config, const PrefillCall& call) {
  TensorChecks checks;
  const bool is_ragged = call.q.rank == 3;
  const std::int64_t tokens = is_ragged ? call.q.shape[0] : call.q.shape[1];
  const std::int64_t rows = tokens * config.q_per_kv;
  if (rows == 0 || batch_of(call) == 0) {
    return 0;
  }
  // All requests may be more than an int counts.
  const std::int64_t tiles =
      is_ragged ? kernel_interface::first_row_tile(rows, config.block_m, 0) + batch_of(call)
                : (rows + config.block_m - 1) / config.block_m * call.q.shape[0];
  if (rows > INT32_MAX - config.block_m || tiles > INT32_MAX) {
    checks.add("q", describe(call.q),
               fmt::format("must have fewer than {} rows of tokens and query heads of a kv head, "
                           "and {} tiles of {} of them",
                           INT32_MAX - config.block_m, INT32_MAX, config.block_m),
               "split the batch");
    checks.finish();
  }
  return tiles;
}

std::int64_t partial_rows(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  const std::int64_t tokens =
      call.q.rank == 3 ? call.q.shape[0] : call.q.shape[0] * call.q.shape[1];
  return tokens * descriptor.num_q_heads;
}

}  // namespace attnjit
