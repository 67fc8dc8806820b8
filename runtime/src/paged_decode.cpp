#include "attnjit/paged_decode.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "decode_arguments.hpp"
#include "host_schedule.hpp"
#include "latent_arguments.hpp"
#include "stream_capture.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

constexpr std::int64_t ceil_divide(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// The partial results fill the workspace: all outputs, then all states.
PartialResults partial_results(const DecodePlan& plan, void* workspace) {
  const DecodeGrid& grid = plan.grid();
  const PartialTiles tiles = partial_tiles(grid, plan.kernels().combine_config);
  auto* out = static_cast<kernel_interface::PartialValue*>(workspace);
  const std::int64_t count = grid.max_pieces * grid.num_kv_heads * tiles.tiles;
  return {out, reinterpret_cast<PartialState*>(out + count * tiles.values), tiles.tiles};
}

void check_workspace(const void* workspace, std::int64_t given, std::int64_t needed) {
  TensorChecks checks;
  if (workspace == nullptr || given < needed) {
    checks.add("workspace", fmt::format("{} bytes at {}", given, workspace),
               fmt::format("must be at least {} bytes of device memory", needed),
               "allocate the workspace bytes that the plan tells");
  } else if (reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0) {
    checks.add("workspace", fmt::format("{}", workspace), "must be 16-byte aligned",
               "round the pointer up to 16 bytes");
  }
  checks.finish();
}

void launch_attention(const DecodePlan& plan, const DecodeCall& call,
                      const PagedDecodeArguments& arguments, CUstream_st* stream) {
  const DecodeGrid& grid = plan.grid();
  LaunchGrid blocks;
  blocks.x = static_cast<unsigned>(grid.row_tiles);
  blocks.y = static_cast<unsigned>(grid.num_kv_heads);
  blocks.z = static_cast<unsigned>(grid.num_parts);
  const LoadedKernel& kernel = plan.kernels().attention;
  const AttentionDescriptor& descriptor = plan.kernels().descriptor;
  const KernelConfig& config = plan.kernels().config;
  if (const auto* swapped_config = std::get_if<SwappedDecodeConfig>(&config)) {
    const SwappedDecodeArguments swapped =
        make_swapped_arguments(descriptor, swapped_config->kv_copy, call, arguments, kernel);
    launch(kernel, blocks, stream, &swapped);
  } else if (const auto* seesaw_config = std::get_if<SeesawDecodeConfig>(&config)) {
    const SeesawDecodeArguments seesaw =
        make_seesaw_arguments(descriptor, seesaw_config->kv_copy, call, arguments, kernel);
    blocks.cluster_x = grid.row_tiles % 2 == 0 ? 2 : 1;  // they read the same pages: start together
    launch(kernel, blocks, stream, &seesaw);
  } else {
    launch(kernel, blocks, stream, &arguments);
  }
}

// How the combine kernel shares its work out: one line a warp, or two or four if there are more
// than warps on the device; several warps per line if there are fewer. It takes fewer of those if
// the requests have few pieces, which only the device knows.
struct CombineShape {
  int lines_at_once = 1;
  int warps_per_line = 1;
  std::int64_t warps = 0;  // that may have work
};

CombineShape shape_combine(const DecodePlan& plan) {
  constexpr int most_lines_at_once = 4;
  const CombineConfig& config = plan.kernels().combine_config;
  const std::int64_t room = std::int64_t{plan.kernels().target.num_sms} * config.num_warps;
  const std::int64_t lines = plan.batch() * lines_per_request(plan.grid(), config);
  const int lines_of_tile = partial_tiles(plan.grid(), config).lines;
  CombineShape shape;
  while (shape.lines_at_once < most_lines_at_once && lines > room * shape.lines_at_once &&
         lines_of_tile % (2 * shape.lines_at_once) == 0) {
    shape.lines_at_once *= 2;
  }
  while (shape.warps_per_line < config.num_warps && lines * shape.warps_per_line * 2 <= room) {
    shape.warps_per_line *= 2;
  }
  shape.warps = lines / shape.lines_at_once * shape.warps_per_line;
  return shape;
}

void launch_combine(const DecodePlan& plan, const PagedDecodeArguments& attention,
                    CUstream_st* stream) {
  const PreparedDecode& kernels = plan.kernels();
  CombineArguments arguments = {};
  arguments.partial = attention.partial;
  arguments.out = attention.out;
  arguments.lse = attention.lse;
  arguments.piece_offsets = attention.piece_offsets;
  arguments.out_strides = attention.out_strides;
  arguments.lse_strides = attention.lse_strides;
  arguments.batch = plan.batch();
  arguments.seqlen_q = plan.seqlen_q();
  arguments.num_kv_heads = kernels.descriptor.num_kv_heads;
  arguments.q_per_kv = kernels.descriptor.q_per_kv();
  const CombineShape shape = shape_combine(plan);
  arguments.lines_at_once = shape.lines_at_once;
  arguments.warps_per_line = shape.warps_per_line;
  arguments.sinks = attention.sinks;
  const std::int64_t blocks = std::min(ceil_divide(shape.warps, kernels.combine_config.num_warps),
                                       std::int64_t{kernels.target.num_sms});
  launch(kernels.combine, {.x = static_cast<unsigned>(blocks)}, stream, &arguments,
         kernels.combine_config.overlaps_attention ? LaunchOrder::overlapping_previous
                                                   : LaunchOrder::after_previous);
}

// Every chunk of every request has a place for its partial result; pieces are counted in 32 bits.
DecodeGrid chunked_grid(TensorChecks& checks, const DecodeGrid& grid, const ScheduleConfig& config,
                        int max_batch, int max_seqlen_kv) {
  if (max_seqlen_kv < 1) {
    checks.add("max_seqlen_kv", fmt::format("{}", max_seqlen_kv),
               "must be at least 1 for a batch-invariant descriptor, whose workspace grows with it",
               "give the keys of the longest request, or those that the block table has pages for");
    return grid;
  }
  const DecodeGrid chunked = with_chunks(grid, config, max_batch, max_seqlen_kv);
  if (chunked.max_pieces > INT32_MAX) {
    checks.add("max_seqlen_kv", fmt::format("{}", max_seqlen_kv),
               fmt::format("must be at most {} for {} requests",
                           INT32_MAX / max_batch * config.chunk_blocks * config.block_n, max_batch),
               "split the batch");
  }
  return chunked;
}

// What the device would take for 0 is a mistake where it can be seen.
void check_host_lengths(std::span<const int> seq_lens) {
  const auto negative =
      std::find_if(seq_lens.begin(), seq_lens.end(), [](int length) { return length < 0; });
  if (negative != seq_lens.end()) {
    TensorChecks checks;
    checks.add(fmt::format("seq_lens[{}]", negative - seq_lens.begin()),
               fmt::format("{}", *negative), "must be 0 or more",
               "pass 0 for a request without keys");
    checks.finish();
  }
}

}  // namespace

DecodePlan::DecodePlan(std::shared_ptr<const PreparedDecode> kernels, int max_batch, int seqlen_q,
                       int max_seqlen_kv, const std::shared_ptr<const DeviceAllocator>& allocator)
    : kernels_(std::move(kernels)), max_batch_(max_batch), seqlen_q_(seqlen_q) {
  TensorChecks checks;
  std::int64_t most_batch = INT32_MAX;
  if (seqlen_q < 1 || seqlen_q > kernels_->descriptor.max_seqlen_q) {
    checks.add("seqlen_q", fmt::format("{}", seqlen_q),
               fmt::format("must be between 1 and the descriptor's max_seqlen_q, {}",
                           kernels_->descriptor.max_seqlen_q),
               "prepare a descriptor with a larger max_seqlen_q");
  } else {
    grid_ = make_decode_grid(kernels_->tile, kernels_->target, kernels_->descriptor.num_kv_heads,
                             seqlen_q);
    // The combine kernel counts lines in 32 bits.
    most_batch = INT32_MAX / lines_per_request(grid_, kernels_->combine_config);
  }
  if (max_batch < 1 || max_batch > most_batch) {
    checks.add("max_batch", fmt::format("{}", max_batch),
               fmt::format("must be between 1 and {}", most_batch), "split the batch");
  } else if (kernels_->descriptor.batch_invariant) {
    grid_ = chunked_grid(checks, grid_, kernels_->schedule_config, max_batch, max_seqlen_kv);
  }
  if (!kernels_->descriptor.batch_invariant && max_seqlen_kv < 0) {
    checks.add("max_seqlen_kv", fmt::format("{}", max_seqlen_kv), "must be 0 or more",
               "pass 0 where the descriptor is not batch_invariant");
  }
  checks.finish();
  const auto requests = static_cast<std::size_t>(max_batch) + 1;
  parts_ =
      DeviceBuffer(kernels_->device,
                   static_cast<std::size_t>(grid_.num_parts) * sizeof(SchedulePart), allocator);
  piece_offsets_ = DeviceBuffer(kernels_->device, requests * sizeof(int), allocator);
  unit_offsets_ = DeviceBuffer(kernels_->device, requests * sizeof(long long), allocator);
}

std::int64_t DecodePlan::workspace_bytes() const {
  return attnjit::workspace_bytes(grid_, kernels_->combine_config);
}

void DecodePlan::check_batch(std::int64_t batch) const {
  if (batch < 1 || batch > max_batch_) {
    TensorChecks checks;
    checks.add("batch", fmt::format("{}", batch),
               fmt::format("must be between 1 and the plan's max_batch, {}", max_batch_),
               batch < 1 ? "update the plan with the lengths of at least one request"
                         : "make a plan for larger batches");
    checks.finish();
  }
}

void DecodePlan::update(const int* device_seq_lens, int batch, CUstream_st* stream) {
  check_batch(batch);
  if (reinterpret_cast<std::uintptr_t>(device_seq_lens) % alignof(int) != 0) {
    TensorChecks checks;
    checks.add("seq_lens", fmt::format("{}", static_cast<const void*>(device_seq_lens)),
               fmt::format("must be {}-byte aligned", alignof(int)), "copy to aligned memory");
    checks.finish();
  }
  ScheduleArguments arguments = {};
  arguments.seq_lens = device_seq_lens;
  arguments.parts = static_cast<SchedulePart*>(parts_.data());
  arguments.piece_offsets = static_cast<int*>(piece_offsets_.data());
  arguments.unit_offsets = static_cast<long long*>(unit_offsets_.data());
  arguments.batch = batch;
  arguments.num_parts = grid_.num_parts;
  arguments.seqlen_q = seqlen_q_;
  arguments.most_chunks = grid_.most_chunks;
  launch(kernels_->schedule, {}, stream, &arguments);
  batch_ = batch;
  may_split_ = grid_.most_chunks > 0 ? grid_.most_chunks > 1 : grid_.num_parts > 1;
}

void DecodePlan::update(std::span<const int> seq_lens, CUstream_st* stream) {
  check_batch(static_cast<std::int64_t>(seq_lens.size()));
  check_host_lengths(seq_lens);
  if (is_capturing(stream, kernels_->device)) {
    TensorChecks checks;
    checks.add("stream", "being captured", "must not be captured: a replay would copy host memory",
               "update before the capture, or from lengths in device memory");
    checks.finish();
  }
  const HostSchedule schedule =
      make_host_schedule(seq_lens, seqlen_q_, kernels_->schedule_config, grid_);
  parts_.upload(schedule.parts.data(), schedule.parts.size() * sizeof(SchedulePart), stream);
  piece_offsets_.upload(schedule.piece_offsets.data(), schedule.piece_offsets.size() * sizeof(int),
                        stream);
  batch_ = static_cast<int>(seq_lens.size());
  may_split_ = schedule.piece_offsets.back() > 0;
}

void run_decode(const DecodePlan& plan, const DecodeCall& call, void* workspace,
                std::int64_t workspace_bytes, CUstream_st* stream) {
  const AttentionDescriptor& descriptor = plan.kernels().descriptor;
  plan.check_batch(plan.batch());
  check_decode_call(descriptor, call, plan.batch(), plan.seqlen_q());
  check_workspace(workspace, workspace_bytes, plan.workspace_bytes());
  PagedDecodeArguments arguments = make_decode_arguments(descriptor, call);
  arguments.parts = static_cast<const SchedulePart*>(plan.parts_.data());
  arguments.piece_offsets = static_cast<const int*>(plan.piece_offsets_.data());
  arguments.partial = partial_results(plan, workspace);
  launch_attention(plan, call, arguments, stream);
  if (plan.may_split_) {
    launch_combine(plan, arguments, stream);
  }
}

}  // namespace attnjit
