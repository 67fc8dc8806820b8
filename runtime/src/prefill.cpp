#include "attnjit/prefill.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "prefill_arguments.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

// Row tiles of all requests: as many as there can be, for the device knows how many there are. The
// kernel counts rows and tiles in 32 bits.
std::int64_t count_row_tiles(const PrefillConfig& config, const PrefillCall& call,
                             const PrefillArguments& arguments) {
  TensorChecks checks;
  const bool is_ragged = arguments.queries.offsets != nullptr;
  const std::int64_t tokens = is_ragged ? call.q.shape[0] : call.q.shape[1];
  const std::int64_t rows = tokens * config.q_per_kv;
  if (rows == 0 || batch_of(call) == 0) {
    return 0;
  }
  // All requests may be more than an int counts.
  const std::int64_t tiles = is_ragged
                                 ? first_row_tile(rows, config.block_m, 0) + batch_of(call)
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

}  // namespace

void run_prefill(const PreparedPrefill& kernel, const PrefillCall& call, CUstream_st* stream) {
  check_prefill_call(kernel.descriptor, call);
  const PrefillArguments arguments = make_prefill_arguments(kernel.descriptor, call);
  const std::int64_t tiles = count_row_tiles(kernel.config, call, arguments);
  if (tiles == 0) {
    return;
  }
  launch(kernel.kernel,
         {.x = static_cast<unsigned>(tiles),
          .y = static_cast<unsigned>(kernel.descriptor.num_kv_heads)},
         stream, &arguments);
}

}  // namespace attnjit
