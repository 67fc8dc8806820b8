#include "attnjit/prefill.hpp"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "prefill_arguments.hpp"
#include "prefill_grid.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

void check_splits(const PreparedPrefill& kernel, const PrefillPlan& plan) {
  TensorChecks checks;
  if (plan.num_splits < 1 || plan.num_splits > 32) {
    checks.add("plan.num_splits", fmt::format("{}", plan.num_splits), "must be 1 to 32",
               "take the number of splits from a plan of this kernel for this call");
  } else if (kernel.descriptor.batch_invariant && plan.num_splits != 1) {
    checks.add("plan.num_splits", fmt::format("{}", plan.num_splits),
               "must be 1: the descriptor is batch_invariant, and parts depend on the batch",
               "take the number of splits from a plan of this kernel for this call");
  }
  checks.finish();
}

void check_workspace(const PrefillPlan& plan, std::int64_t needed_bytes, const void* workspace,
                     std::int64_t workspace_bytes) {
  constexpr std::uintptr_t alignment_bytes = 16;
  TensorChecks checks;
  if (plan.num_splits > 1 && workspace == nullptr) {
    checks.add("workspace", "null", "must be given: the plan splits the keys",
               fmt::format("pass {} bytes of device memory", needed_bytes));
  } else if (plan.num_splits > 1 && workspace_bytes < needed_bytes) {
    checks.add("workspace_bytes", fmt::format("{}", workspace_bytes),
               fmt::format("must be at least {}: rows of q times query heads, in {} parts",
                           needed_bytes, plan.num_splits),
               "plan again for this call, and allocate what the plan says");
  } else if (plan.num_splits > 1 &&
             reinterpret_cast<std::uintptr_t>(workspace) % alignment_bytes != 0) {
    checks.add("workspace", fmt::format("{}", workspace), "must be 16-byte aligned",
               "pass aligned memory");
  }
  checks.finish();
}

// Thread blocks of the combine kernel for a row tile: a warp has a row.
std::int64_t groups_of_tile(const PreparedPrefill& kernel) {
  return kernel.config.block_m / (kernel.combine_config.num_threads / 32);
}

void require_grid(const PrefillPlan& plan, std::int64_t combine_blocks) {
  if (plan.num_splits > 1 && combine_blocks > INT32_MAX) {
    TensorChecks checks;
    checks.add("plan.num_splits", fmt::format("{}", plan.num_splits),
               "must be 1 for so many query rows",
               "take the number of splits from a plan of this kernel for this call");
    checks.finish();
  }
}

}  // namespace

void run_prefill(const PreparedPrefill& kernel, const PrefillCall& call, const PrefillPlan& plan,
                 void* workspace, std::int64_t workspace_bytes, CUstream_st* stream) {
  check_splits(kernel, plan);
  check_prefill_call(kernel.descriptor, call);
  const std::int64_t rows = partial_rows(kernel.descriptor, call);
  const std::int64_t out_bytes = plan.num_splits * rows * kernel.config.head_dim_v * 4;
  check_workspace(
      plan, out_bytes + plan.num_splits * rows * static_cast<std::int64_t>(sizeof(PartialState)),
      workspace, workspace_bytes);
  PrefillArguments arguments = make_prefill_arguments(kernel.descriptor, call);
  const std::int64_t tiles = count_row_tiles(kernel.config, call);
  if (tiles == 0) {
    return;
  }
  const std::int64_t combine_blocks = plan.num_splits > 1 ? tiles * groups_of_tile(kernel) : 0;
  require_grid(plan, combine_blocks);
  arguments.num_splits = plan.num_splits;
  if (plan.num_splits > 1) {
    arguments.partial_out = static_cast<float*>(workspace);
    arguments.partial_states =
        reinterpret_cast<PartialState*>(static_cast<std::byte*>(workspace) + out_bytes);
    arguments.partial_rows = rows;
  }
  const auto heads = static_cast<unsigned>(kernel.descriptor.num_kv_heads);
  launch(
      kernel.kernel,
      {.x = static_cast<unsigned>(tiles), .y = heads, .z = static_cast<unsigned>(plan.num_splits)},
      stream, &arguments);
  if (plan.num_splits > 1) {
    launch(kernel.combine, {.x = static_cast<unsigned>(combine_blocks), .y = heads}, stream,
           &arguments);
  }
}

void run_prefill(const PreparedPrefill& kernel, const PrefillCall& call, CUstream_st* stream) {
  run_prefill(kernel, call, PrefillPlan{}, nullptr, 0, stream);
}

}  // namespace attnjit
