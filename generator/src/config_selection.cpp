#include "attnjit/config_selection.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attention_kernels.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "interface/decode_schedule.h"
#include "prefill_selection.hpp"
#include "shared_memory_plan.hpp"
#include "sparse_mla_selection.hpp"
#include "tuning_knobs.hpp"

namespace attnjit {
namespace {

struct RowTile {
  int block_m;
  int num_warps;
};

// Row tiles from small to large: the smallest that holds all rows of a kv head wastes least; more
// rows than the largest take several tiles, which read K and V again (from L2).
constexpr std::array<RowTile, 3> row_tiles = {{{16, 4}, {32, 8}, {64, 8}}};

// Deep pipelines hide latency; short key tiles let a deep pipeline fit.
constexpr std::array<int, 2> key_blocks = {64, 32};
constexpr int most_stages = 4;

// Output columns of all rows that one thread may keep: half of its registers. Columns are dealt out
// to warps in eights.
constexpr int most_accumulators = 128;

bool fits_registers(const PagedDecodeConfig& config) {
  const int tiles = (config.head_dim_v / 8 + config.num_warps - 1) / config.num_warps;
  return config.block_m * tiles / 4 <= most_accumulators;
}

bool fits(const PagedDecodeConfig& config, int bytes) {
  return config.shared_memory_bytes <= bytes;
}

// The deepest pipeline of `config`'s tile that fits in `bytes`; num_stages 0 if not even two stages
// do.
PagedDecodeConfig with_most_stages(PagedDecodeConfig config, int bytes) {
  for (config.num_stages = most_stages; config.num_stages >= 2; --config.num_stages) {
    config.shared_memory_bytes = shared_memory_bytes(config);
    if (fits(config, bytes)) {
      return config;
    }
  }
  config.num_stages = 0;
  return config;
}

// The first key block that fits: twice per multiprocessor if it can, so that one thread block
// computes while the other waits for memory, else once.
PagedDecodeConfig fit_tile(PagedDecodeConfig config, const TargetDevice& device) {
  const int half = device.shared_memory_per_sm / 2 - 1024;  // the driver keeps 1 KiB per block
  for (const int bytes : {half, device.shared_memory_per_block}) {
    for (const int block_n : key_blocks) {
      config.block_n = block_n;
      const PagedDecodeConfig fitted = with_most_stages(config, bytes);
      if (fitted.num_stages > 0) {
        return fitted;
      }
    }
  }
  config.num_stages = 0;
  return config;
}

// What every attention kernel over a paged cache takes from the descriptor alone.
template <typename Config>
Config config_for(const AttentionDescriptor& descriptor) {
  Config config;
  config.dtype = descriptor.dtype_q;
  config.head_dim_qk = descriptor.head_dim_qk;
  config.head_dim_v = descriptor.head_dim_v;
  config.q_per_kv = descriptor.q_per_kv();
  config.page_size = descriptor.page_size;
  config.value_source = descriptor.value_source;
  const EffectiveMask mask = effective_mask(descriptor);
  config.mask = mask.mask;
  config.window_left = mask.window_left;
  config.window_right = mask.window_right;
  config.has_sinks = descriptor.has_sinks;
  return config;
}

// Tensor copies bring a tile from whole pages, each at least the eight rows of a swizzle pattern,
// or from within one.
KvCopy select_kv_copy(int page_size) {
  constexpr int tile_tokens = 64;
  constexpr int swizzle_rows = 8;
  const bool is_made_of_pages = tile_tokens % page_size == 0 && page_size % swizzle_rows == 0;
  return is_made_of_pages || page_size % tile_tokens == 0 ? KvCopy::tensor : KvCopy::gather;
}

PagedDecodeConfig select_paged_decode(const AttentionDescriptor& descriptor,
                                      const TargetDevice& device) {
  auto config = config_for<PagedDecodeConfig>(descriptor);
  config.dtype_mask = descriptor.dtype_mask;

  const int rows = descriptor.max_seqlen_q * config.q_per_kv;
  auto tile = std::find_if(row_tiles.begin(), row_tiles.end() - 1,
                           [&](const RowTile& candidate) { return candidate.block_m >= rows; });
  for (;; --tile) {
    config.block_m = tile->block_m;
    config.num_warps = tile->num_warps;
    const PagedDecodeConfig fitted = fit_tile(config, device);
    if (fitted.num_stages > 0 && fits_registers(fitted)) {
      return fitted;
    }
    if (tile == row_tiles.begin()) {
      break;
    }
  }
  throw DescriptorError({{"head_dim_qk", fmt::format("{}", descriptor.head_dim_qk),
                          fmt::format("no tile fits in the {} bytes of shared memory of {} ({})",
                                      device.shared_memory_per_block, device.name, device.arch),
                          "use a GPU with more shared memory per block"}});
}

SwappedDecodeConfig select_swapped_decode(const AttentionDescriptor& descriptor,
                                          const TargetDevice& device) {
  auto config = config_for<SwappedDecodeConfig>(descriptor);
  config.kv_copy = select_kv_copy(config.page_size);
  config.block_rows = (descriptor.max_seqlen_q * config.q_per_kv + 7) / 8 * 8;
  // Boxes of the next tile arrive while this one is used, as many as fit. Gathered, a tile needs
  // all of its boxes to be free.
  const int boxes = config.head_dim_qk / box_columns;
  config.ring_boxes = config.kv_copy == KvCopy::gather ? boxes : 2 * boxes - 1;
  do {
    config.shared_memory_bytes = shared_memory_bytes(config);
  } while (config.shared_memory_bytes > device.shared_memory_per_block &&
           --config.ring_boxes >= boxes);
  return config;
}

SeesawDecodeConfig select_seesaw_decode(const AttentionDescriptor& descriptor) {
  auto config = config_for<SeesawDecodeConfig>(descriptor);
  config.kv_copy = select_kv_copy(config.page_size);
  config.shared_memory_bytes = shared_memory_bytes(config);
  return config;
}

std::vector<std::string> unmet_by(AttentionKernel kernel, const AttentionDescriptor& descriptor,
                                  const TargetDevice& device) {
  switch (kernel) {
    case AttentionKernel::swapped_decode_sm90:
      return unmet_by_swapped_decode(descriptor, device);
    case AttentionKernel::seesaw_decode_sm90:
      return unmet_by_seesaw_decode(descriptor, device);
    case AttentionKernel::paged_decode_sm80:
      return {};
  }
  return {};
}

// In the order in which the model tries them.
constexpr std::array attention_kernels = {AttentionKernel::swapped_decode_sm90,
                                          AttentionKernel::seesaw_decode_sm90,
                                          AttentionKernel::paged_decode_sm80};

AttentionKernel first_kernel(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  return *std::find_if(
      attention_kernels.begin(), attention_kernels.end() - 1,
      [&](AttentionKernel kernel) { return unmet_by(kernel, descriptor, device).empty(); });
}

KernelConfig select_decode(AttentionKernel kernel, const AttentionDescriptor& descriptor,
                           const TargetDevice& device) {
  switch (kernel) {
    case AttentionKernel::swapped_decode_sm90:
      return select_swapped_decode(descriptor, device);
    case AttentionKernel::seesaw_decode_sm90:
      return select_seesaw_decode(descriptor);
    case AttentionKernel::paged_decode_sm80:
      break;
  }
  return select_paged_decode(descriptor, device);
}

CombineConfig select_combine(const AttentionDescriptor& descriptor, const TargetDevice& device,
                             const KernelConfig& decode) {
  CombineConfig config;
  config.dtype = descriptor.dtype_out;
  config.head_dim_v = descriptor.head_dim_v;
  config.partial_rows = 1;
  if (const auto* swapped = std::get_if<SwappedDecodeConfig>(&decode)) {
    config.partial_order = PartialOrder::transposed;
    config.partial_rows = swapped->block_rows;
  } else if (std::holds_alternative<SeesawDecodeConfig>(decode)) {
    config.partial_order = PartialOrder::accumulators;
    config.partial_rows = decode_tile(decode).block_m;
  }
  config.num_warps = 16;
  config.segment_pieces = descriptor.batch_invariant ? 8 : 0;
  config.overlaps_attention = device.compute_capability >= 90;
  config.has_sinks = descriptor.has_sinks;
  return config;
}

// Eight columns a thread, whole rows to a block.
MergeStatesConfig select_merge(const AttentionDescriptor& descriptor) {
  return {.dtype = descriptor.dtype_out, .head_dim_v = descriptor.head_dim_v, .num_threads = 256};
}

// Eight columns a thread. However its scales lie, and in whatever order a page's dimensions: what
// only strides tell shapes no kernel.
AppendKvCacheConfig select_append(const AttentionDescriptor& descriptor) {
  return {
      .dtype = descriptor.dtype_q,
      .dtype_kv = descriptor.dtype_kv,
      .head_dim_qk = descriptor.head_dim_qk,
      .head_dim_v = descriptor.value_source == ValueSource::separate ? descriptor.head_dim_v : 0,
      .num_kv_heads = descriptor.num_kv_heads,
      .page_size = descriptor.page_size,
      .num_threads = 256};
}

// A partial result is written once and read once. Rows that only fill a tile up do not count: few
// are written.
int piece_units(const AttentionDescriptor& descriptor, int block_n) {
  const std::int64_t rows = std::int64_t{descriptor.max_seqlen_q} * descriptor.q_per_kv();
  const int columns = descriptor.value_source == ValueSource::prefix_of_k
                          ? descriptor.head_dim_qk
                          : descriptor.head_dim_qk + descriptor.head_dim_v;
  const std::int64_t block_bytes =
      std::int64_t{block_n} * columns * size_bytes(descriptor.dtype_kv);
  const std::int64_t piece_bytes =
      rows * descriptor.head_dim_v * size_bytes(descriptor.dtype_out) * 2;
  return static_cast<int>(piece_bytes * kernel_interface::block_units / block_bytes);
}

// Measured on an H200: how long a block takes where it is in L2, of its time from memory.
int block_percent(const AttentionDescriptor& descriptor, const KernelConfig& decode) {
  if (std::holds_alternative<SwappedDecodeConfig>(decode)) {
    return 60;  // two tiles at a time
  }
  const int rows = descriptor.max_seqlen_q * descriptor.q_per_kv();
  return std::holds_alternative<SeesawDecodeConfig>(decode) && rows <= 64 ? 90 : 100;
}

ScheduleConfig select_schedule(const AttentionDescriptor& descriptor, const KernelConfig& decode) {
  ScheduleConfig config;
  config.block_n = decode_tile(decode).block_n;
  config.num_threads = 1024;
  config.piece_units = piece_units(descriptor, config.block_n);
  config.block_percent = block_percent(descriptor, decode);
  config.window_left = effective_mask(descriptor).window_left;
  return config;
}

// Of a batch-invariant decode: so many keys that writing and merging a piece costs a sixteenth of
// computing it, as long as a long request alone still fills the device.
int chunk_blocks(const ScheduleConfig& schedule) {
  constexpr int least_keys = 256;
  constexpr int most_keys = 1024;
  const int wanted = 16 * schedule.piece_units / kernel_interface::block_units;
  int blocks = least_keys / schedule.block_n;
  while (blocks < wanted && blocks * schedule.block_n < most_keys) {
    blocks *= 2;
  }
  return blocks;
}

void set_chunks(int blocks, KernelConfig& decode) {
  std::visit(
      [&](auto& config) {
        if constexpr (requires { config.chunk_blocks; }) {
          config.chunk_blocks = blocks;
        }
      },
      decode);
}

KernelConfig configure_attention(const AttentionDescriptor& descriptor, const TargetDevice& device,
                                 const TuningKnobs& knobs, std::vector<Violation>& violations) {
  const AttentionKernel kernel = knobs.kernel.value_or(first_kernel(descriptor, device));
  const std::vector<std::string> unmet = unmet_by(kernel, descriptor, device);
  if (!unmet.empty()) {
    violations.push_back({"kernel", std::string(to_string(kernel)),
                          fmt::format("does not serve this decode: {}", fmt::join(unmet, "; ")),
                          "choose another, or none"});
    return select_paged_decode(descriptor, device);
  }
  KernelConfig attention = select_decode(kernel, descriptor, device);
  apply_attention_knobs(knobs, device, attention, violations);
  return attention;
}

}  // namespace

EffectiveMask effective_mask(const AttentionDescriptor& descriptor) {
  const int most_later = descriptor.max_seqlen_q - 1;  // keys after a query's own
  if (descriptor.mask != MaskKind::sliding_window) {
    const bool is_trivial = descriptor.mask == MaskKind::causal && most_later == 0;
    return {is_trivial ? MaskKind::none : descriptor.mask};
  }
  // Positions have 31 bits: so long a window reaches every key.
  constexpr int hides_nothing = std::numeric_limits<int>::max() - 1;
  const int left = descriptor.window_left >= hides_nothing ? -1 : descriptor.window_left;
  const int right =
      descriptor.window_right < 0 ? most_later : std::min(descriptor.window_right, most_later);
  if (left < 0 && right == most_later) {
    return {MaskKind::none};
  }
  if (left < 0 && right == 0) {
    return {MaskKind::causal};
  }
  return {MaskKind::sliding_window, left, right};
}

std::vector<KernelConfig> configure_decode(const AttentionDescriptor& descriptor,
                                           const TargetDevice& device, const TuningKnobs& knobs) {
  validate(descriptor);
  require_operation(descriptor, Operation::decode);
  std::vector<Violation> violations;
  KernelConfig attention = configure_attention(descriptor, device, knobs, violations);
  CombineConfig combine = select_combine(descriptor, device, attention);
  apply_combine_knobs(knobs, descriptor.batch_invariant, combine, violations);
  ScheduleConfig schedule = select_schedule(descriptor, attention);
  schedule.chunk_blocks = descriptor.batch_invariant ? chunk_blocks(schedule) : 0;
  apply_schedule_knobs(knobs, descriptor.batch_invariant, schedule, violations);
  if (!violations.empty()) {
    throw TuningError(to_string(std::span<const Violation>(violations)));
  }
  set_chunks(schedule.chunk_blocks, attention);
  return {attention, combine, schedule};
}

std::vector<KernelConfig> configure_tuned(const AttentionDescriptor& descriptor,
                                          const TargetDevice& device, const TunedRow& row) {
  try {
    return configure_decode(descriptor, device, row.knobs);
  } catch (const TuningError& error) {
    throw TuningError(fmt::format("tuned row of {}, {}: {}; fix: tune again, or remove the row",
                                  device.name, describe(row.key), error.what()));
  }
}

std::vector<KernelConfig> select_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device) {
  validate(descriptor);
  if (descriptor.operation == Operation::merge_states) {
    return {select_merge(descriptor)};
  }
  if (descriptor.operation == Operation::prefill ||
      descriptor.operation == Operation::prefill_kvcache ||
      descriptor.operation == Operation::mla_prefill_rope) {
    const PrefillConfig prefill = select_prefill(descriptor, device);
    return {prefill, combine_for(prefill)};
  }
  if (descriptor.operation == Operation::append_kv_cache) {
    return {select_append(descriptor)};
  }
  if (descriptor.operation == Operation::sparse_mla_decode ||
      descriptor.operation == Operation::sparse_mla_prefill) {
    return {select_sparse_mla(descriptor, device)};
  }
  const TunedRow* row = find_tuned_row(descriptor, device);
  return row != nullptr ? configure_tuned(descriptor, device, *row)
                        : configure_decode(descriptor, device, {});
}

std::vector<KernelCandidate> attention_candidates(const AttentionDescriptor& descriptor,
                                                  const TargetDevice& device) {
  validate(descriptor);
  require_operation(descriptor, Operation::decode);
  std::vector<KernelCandidate> candidates;
  for (const AttentionKernel kernel : attention_kernels) {
    candidates.push_back({std::string(to_string(kernel)), unmet_by(kernel, descriptor, device)});
  }
  return candidates;
}

}  // namespace attnjit
