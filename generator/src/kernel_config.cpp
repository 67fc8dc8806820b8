#include "attnjit/kernel_config.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "kernel_template.hpp"

namespace attnjit {
namespace {

std::string describe_chunks(int chunk_blocks) {
  return chunk_blocks > 0 ? fmt::format(" chunks {}", chunk_blocks) : "";
}

template <typename Config>
std::string_view describe_copy(const Config& config) {
  if constexpr (requires { config.kv_copy; }) {
    return config.kv_copy == KvCopy::gather ? " gathered" : "";
  }
  return "";
}

// Of an attention kernel: "bf16 576/512 x16 page 64 causal", "… sliding_window 127/0 sinks".
template <typename Config>
std::string describe_call(const Config& config) {
  const std::string window = config.mask == MaskKind::sliding_window
                                 ? fmt::format(" {}/{}", config.window_left, config.window_right)
                                 : "";
  return fmt::format("{} {}/{} x{} page {}{} {}{}{}", to_string(config.dtype), config.head_dim_qk,
                     config.head_dim_v, config.q_per_kv, config.page_size, describe_copy(config),
                     to_string(config.mask), window, config.has_sinks ? " sinks" : "");
}

std::string describe_fields(const PagedDecodeConfig& config) {
  return fmt::format("{} m{} n{} stages {} warps {}{}", describe_call(config), config.block_m,
                     config.block_n, config.num_stages, config.num_warps,
                     describe_chunks(config.chunk_blocks));
}

std::string describe_fields(const SwappedDecodeConfig& config) {
  return fmt::format("{} rows {} ring {}{}", describe_call(config), config.block_rows,
                     config.ring_boxes, describe_chunks(config.chunk_blocks));
}

std::string describe_fields(const SeesawDecodeConfig& config) {
  return describe_call(config) + describe_chunks(config.chunk_blocks);
}

std::string describe_fields(const CombineConfig& config) {
  const std::string order =
      config.segment_pieces > 0 ? fmt::format(", segments of {}", config.segment_pieces) : "";
  return fmt::format("{} {} {} of {} warps {}{}{}", to_string(config.dtype), config.head_dim_v,
                     to_string(config.partial_order), config.partial_rows, config.num_warps,
                     config.has_sinks ? " sinks" : "", order);
}

std::string describe_fields(const ScheduleConfig& config) {
  return fmt::format("n{} threads {} piece {} block {}%{}{}", config.block_n, config.num_threads,
                     config.piece_units, config.block_percent,
                     config.window_left >= 0 ? fmt::format(" window {}", config.window_left) : "",
                     describe_chunks(config.chunk_blocks));
}

std::string describe_fields(const MergeStatesConfig& config) {
  return fmt::format("{} {} threads {}", to_string(config.dtype), config.head_dim_v,
                     config.num_threads);
}

std::string describe_types(const PrefillConfig& config) {
  AttentionDescriptor types;
  types.operation = config.head_dim_rope > 0 ? Operation::mla_prefill_rope : Operation::prefill;
  types.dtype_q = config.dtype_q;
  types.dtype_kv = config.dtype_kv;
  types.dtype_out = config.dtype_out;
  types.dtype_rope = config.dtype_rope;
  types.scales_q = config.scales_q;
  types.scales_kv = config.scales_kv;
  types.scales_rope = config.scales_rope;
  types.scale_block = config.scale_block;
  return attnjit::describe_types(types);
}

// "causal", "sliding_window 127/0", "(causal and document or prefix_lm)".
std::string describe_prefill_mask(const PrefillConfig& config) {
  const bool is_composed = config.mask == MaskKind::composed;
  const bool has_window = config.mask == MaskKind::sliding_window ||
                          (is_composed && config.mask_clauses.has(MaskKind::sliding_window));
  const std::string mask = is_composed ? fmt::format("({})", to_string(config.mask_clauses))
                                       : std::string(to_string(config.mask));
  return has_window ? fmt::format("{} {}/{}", mask, config.window_left, config.window_right) : mask;
}

std::string describe_fields(const PrefillConfig& config) {
  const std::string chunk = config.chunk_size > 0 ? fmt::format(" {}", config.chunk_size) : "";
  const std::string modifier = config.score_modifier != ScoreModifier::none
                                   ? fmt::format(" {}", to_string(config.score_modifier))
                                   : "";
  const std::string blocks =
      config.sparsity_block > 0 ? fmt::format(" blocks {}", config.sparsity_block) : "";
  const std::string pages =
      config.page_size > 0 ? fmt::format(" page {}", config.page_size) : std::string();
  return fmt::format(
      "{} {}/{} x{}{} {}{}{}{}{} m{} n{} warps {}", describe_types(config), config.head_dim_qk,
      config.head_dim_v, config.q_per_kv, pages, describe_prefill_mask(config), chunk, modifier,
      blocks, config.has_sinks ? " sinks" : "", config.block_m, config.block_n, config.num_warps);
}

std::string describe_fields(const CombinePrefillConfig& config) {
  return fmt::format("{} {} x{} m{}{}", to_string(config.dtype_out), config.head_dim_v,
                     config.q_per_kv, config.block_m, config.has_sinks ? " sinks" : "");
}

std::string describe_fields(const SparseMlaConfig& config) {
  const std::string encoding = config.kv_encoding != KvEncoding::plain
                                   ? fmt::format(" {}", to_string(config.kv_encoding))
                                   : std::string();
  return fmt::format("{}{} {}/{}{} m{} n{} warps {}", to_string(config.dtype), encoding,
                     config.head_dim_qk, config.head_dim_v, config.has_sinks ? " sinks" : "",
                     config.block_m, config.block_n, config.num_warps);
}

std::string describe_fields(const AppendKvCacheConfig& config) {
  return fmt::format("{} to {} {}/{} heads {} page {} threads {}", to_string(config.dtype),
                     to_string(config.dtype_kv), config.head_dim_qk, config.head_dim_v,
                     config.num_kv_heads, config.page_size, config.num_threads);
}

constexpr int wgmma_rows = 64;  // M of wgmma: tokens of a swapped tile, query rows of a seesaw's
constexpr int seesaw_tokens = 64;

std::optional<DecodeTile> tile_of(const PagedDecodeConfig& config) {
  return DecodeTile{.block_m = config.block_m,
                    .block_n = config.block_n,
                    .q_per_kv = config.q_per_kv,
                    .num_threads = config.num_warps * 32,
                    .shared_memory_bytes = config.shared_memory_bytes};
}

std::optional<DecodeTile> tile_of(const SwappedDecodeConfig& config) {
  return DecodeTile{.block_m = config.block_rows,
                    .block_n = wgmma_rows,
                    .q_per_kv = config.q_per_kv,
                    .num_threads = 3 * 128,
                    .shared_memory_bytes = config.shared_memory_bytes};
}

std::optional<DecodeTile> tile_of(const SeesawDecodeConfig& config) {
  return DecodeTile{.block_m = wgmma_rows,
                    .block_n = seesaw_tokens,
                    .q_per_kv = config.q_per_kv,
                    .num_threads = 3 * 128,
                    .shared_memory_bytes = config.shared_memory_bytes};
}

template <typename Config>
std::optional<DecodeTile> tile_of(const Config&) {
  return std::nullopt;
}

}  // namespace

DecodeTile decode_tile(const KernelConfig& config) {
  const auto tile = std::visit([](const auto& fields) { return tile_of(fields); }, config);
  if (!tile) {
    throw std::invalid_argument(
        fmt::format("{} is no attention kernel over a schedule", template_of(config).name));
  }
  return *tile;
}

std::string_view to_string(KvCopy copy) {
  switch (copy) {
    case KvCopy::tensor:
      return "tensor";
    case KvCopy::gather:
      return "gather";
  }
  return "";
}

std::string_view to_string(PartialOrder order) {
  switch (order) {
    case PartialOrder::rows:
      return "rows";
    case PartialOrder::accumulators:
      return "accumulators";
    case PartialOrder::transposed:
      return "transposed";
  }
  return "";
}

std::string_view to_string(KernelRole role) {
  switch (role) {
    case KernelRole::attention:
      return "attention";
    case KernelRole::combine:
      return "combine";
    case KernelRole::schedule:
      return "schedule";
    case KernelRole::merge:
      return "merge";
    case KernelRole::prefill:
      return "prefill";
    case KernelRole::append:
      return "append";
    case KernelRole::sparse:
      return "sparse";
  }
  return "";
}

KernelRole role_of(const KernelConfig& config) {
  return template_of(config).role;
}

std::string_view kernel_name(const KernelConfig& config) {
  return template_of(config).name;
}

std::string to_json(const KernelConfig& config) {
  nlohmann::ordered_json json;
  json["kernel"] = template_of(config).name;
  std::visit(
      [&](const auto& fields) {
        for_each_field(fields, [&](const char* name, const auto& member, const char*) {
          using Member = std::decay_t<decltype(member)>;
          if constexpr (std::is_enum_v<Member> || std::is_same_v<Member, MaskFormula>) {
            json[name] = to_string(member);
          } else {
            json[name] = member;
          }
        });
      },
      config);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string describe(const KernelConfig& config) {
  return std::visit(
      [&](const auto& fields) {
        return fmt::format("{} {}", template_of(config).name, describe_fields(fields));
      },
      config);
}

}  // namespace attnjit
