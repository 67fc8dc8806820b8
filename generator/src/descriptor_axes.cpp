#include "descriptor_axes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "enum_names.hpp"

namespace attnjit {
namespace {

template <typename Enum>
std::vector<Enum> enumerators() {
  std::vector<Enum> values;
  for (std::size_t i = 0; i < enumerator_names<Enum>().size(); ++i) {
    values.push_back(static_cast<Enum>(i));
  }
  return values;
}

template <typename Enum>
DescriptorAxis enumerator_axis(std::string name, Enum AttentionDescriptor::*field) {
  DescriptorAxis axis{std::move(name), {}};
  for (const Enum value : enumerators<Enum>()) {
    axis.values.push_back({std::string(to_string(value)),
                           [field, value](AttentionDescriptor& call) { call.*field = value; }});
  }
  return axis;
}

DescriptorAxis flag_axis(std::string name, bool AttentionDescriptor::*field) {
  return {std::move(name),
          {{"no", [field](AttentionDescriptor& call) { call.*field = false; }},
           {"yes", [field](AttentionDescriptor& call) { call.*field = true; }}}};
}

std::vector<DataType> legal_types(std::span<const DescriptorRule> legality) {
  std::vector<DataType> types;
  for (const DataType type : enumerators<DataType>()) {
    AttentionDescriptor call;
    call.dtype_q = call.dtype_kv = call.dtype_out = type;
    if (find_violations(call, legality).empty()) {
      types.push_back(type);
    }
  }
  return types;
}

DescriptorAxis types_axis(std::string name, DataType AttentionDescriptor::*field,
                          std::span<const DataType> types) {
  DescriptorAxis axis{std::move(name), {}};
  for (const DataType type : types) {
    axis.values.push_back({std::string(to_string(type)),
                           [field, type](AttentionDescriptor& call) { call.*field = type; }});
  }
  return axis;
}

// Of q and of k and v: "bf16" where they are alike.
DescriptorAxis input_types_axis(std::span<const DataType> types) {
  DescriptorAxis axis{std::string(dtypes_axis), {}};
  for (const DataType q : types) {
    for (const DataType kv : types) {
      axis.values.push_back(
          {q == kv ? std::string(to_string(q)) : fmt::format("{}/{}", to_string(q), to_string(kv)),
           [q, kv](AttentionDescriptor& call) {
             call.dtype_q = q;
             call.dtype_kv = kv;
           }});
    }
  }
  return axis;
}

// All multiples of 8 up to the widest head that stands alone, and the pairs of the models.
DescriptorAxis head_dim_pairs_axis() {
  std::vector<std::pair<int, int>> dims;
  for (int dim = 8; dim <= 256; dim += 8) {
    dims.emplace_back(dim, dim);
  }
  dims.insert(dims.end(), {{192, 128}, {320, 256}, {512, 512}, {576, 512}});
  DescriptorAxis axis{std::string(head_dims_axis), {}};
  for (const auto& [qk, v] : dims) {
    axis.values.push_back({qk == v ? fmt::format("{}", qk) : fmt::format("{}/{}", qk, v),
                           [qk = qk, v = v](AttentionDescriptor& call) {
                             call.head_dim_qk = qk;
                             call.head_dim_v = v;
                           }});
  }
  return axis;
}

DescriptorAxis head_ratio_axis() {
  constexpr int most_heads = 1024;
  DescriptorAxis axis{"q_per_kv", {}};
  for (int ratio = 1; ratio <= 128; ++ratio) {
    axis.values.push_back({fmt::format("{}", ratio), [ratio](AttentionDescriptor& call) {
                             call.num_kv_heads = std::min(call.num_kv_heads, most_heads / ratio);
                             call.num_q_heads = call.num_kv_heads * ratio;
                           }});
  }
  return axis;
}

DescriptorAxis query_tokens_axis() {
  DescriptorAxis axis{"max_seqlen_q", {}};
  for (int tokens = 0; tokens <= 128; ++tokens) {
    axis.values.push_back({tokens == 0 ? "any" : fmt::format("{}", tokens),
                           [tokens](AttentionDescriptor& call) { call.max_seqlen_q = tokens; }});
  }
  return axis;
}

DescriptorAxis layouts_axis() {
  constexpr std::array layouts = {
      std::pair{KvLayout::paged, KvLayoutTag::nhd}, std::pair{KvLayout::paged, KvLayoutTag::hnd},
      std::pair{KvLayout::ragged, KvLayoutTag::thd}, std::pair{KvLayout::dense, KvLayoutTag::bshd},
      std::pair{KvLayout::dense, KvLayoutTag::bhsd}};
  DescriptorAxis axis{std::string(layout_axis), {}};
  for (const auto& [layout, tag] : layouts) {
    axis.values.push_back({fmt::format("{} {}", to_string(layout), to_string(tag)),
                           [layout = layout, tag = tag](AttentionDescriptor& call) {
                             const int page_size = call.page_size == 0 ? 64 : call.page_size;
                             call.kv_layout = layout;
                             call.kv_layout_tag = tag;
                             call.page_size = layout == KvLayout::paged ? page_size : 0;
                           }});
  }
  return axis;
}

// With scales of blocks, which it cannot be without.
void set_scale_block(AttentionDescriptor& call, int columns) {
  call.scale_block = columns;
  const auto is_block = [](ScaleGrain grain) { return grain == ScaleGrain::per_block; };
  if (!is_block(call.scales_q) && !is_block(call.scales_kv) && !is_block(call.scales_rope)) {
    call.scales_kv = ScaleGrain::per_block;
  }
}

DescriptorAxis scale_blocks_axis() {
  DescriptorAxis axis{"scale_block", {}};
  for (int columns = 8; columns <= 256; columns += 8) {
    axis.values.push_back({fmt::format("{}", columns), [columns](AttentionDescriptor& call) {
                             set_scale_block(call, columns);
                           }});
  }
  return axis;
}

DescriptorAxis pages_axis() {
  DescriptorAxis axis{"page_size", {}};
  for (int tokens = 1; tokens <= 256; ++tokens) {
    axis.values.push_back({fmt::format("{}", tokens),
                           [tokens](AttentionDescriptor& call) { call.page_size = tokens; }});
  }
  return axis;
}

// With what a mask of the kind cannot be without.
void set_mask(AttentionDescriptor& call, MaskKind mask) {
  const bool is_window = mask == MaskKind::sliding_window;
  const bool is_chunked = mask == MaskKind::chunked || mask == MaskKind::chunked_causal;
  call.mask = mask;
  call.window_left = is_window ? 127 : -1;
  call.window_right = is_window ? 0 : -1;
  call.chunk_size = is_chunked ? 128 : 0;
  call.mask_expression = mask == MaskKind::custom ? "q - k < 1000" : "";
  call.mask_formula = mask == MaskKind::composed ? "causal and document" : "";
  if (mask != MaskKind::materialized_additive) {
    call.dtype_mask = DataType::uint8;
  } else if (call.dtype_mask == DataType::uint8) {
    call.dtype_mask = DataType::fp32;
  }
}

DescriptorAxis masks_axis() {
  DescriptorAxis axis{std::string(mask_axis), {}};
  for (const MaskKind mask : enumerators<MaskKind>()) {
    axis.values.push_back({std::string(to_string(mask)),
                           [mask](AttentionDescriptor& call) { set_mask(call, mask); }});
  }
  return axis;
}

// The same of a score modifier.
DescriptorAxis modifiers_axis() {
  DescriptorAxis axis{"score_modifier", {}};
  for (const ScoreModifier modifier : enumerators<ScoreModifier>()) {
    axis.values.push_back({std::string(to_string(modifier)), [modifier](AttentionDescriptor& call) {
                             call.score_modifier = modifier;
                             call.score_expression =
                                 modifier == ScoreModifier::custom ? "0.5f * score" : "";
                             if (modifier != ScoreModifier::additive_bias) {
                               call.dtype_bias = DataType::fp32;
                             }
                           }});
  }
  return axis;
}

DescriptorAxis sparsities_axis() {
  DescriptorAxis axis{"sparsity", {}};
  for (const Sparsity sparsity : enumerators<Sparsity>()) {
    axis.values.push_back({std::string(to_string(sparsity)), [sparsity](AttentionDescriptor& call) {
                             call.sparsity = sparsity;
                             call.sparsity_block = sparsity == Sparsity::block ? 64 : 0;
                             call.topk = sparsity == Sparsity::token ? 2048 : 0;
                           }});
  }
  return axis;
}

}  // namespace

std::vector<DescriptorAxis> descriptor_axes(std::span<const DescriptorRule> legality) {
  using Call = AttentionDescriptor;
  const std::vector<DataType> types = legal_types(legality);
  return {input_types_axis(types),
          types_axis(std::string(output_axis), &Call::dtype_out, types),
          types_axis("dtype_rope", &Call::dtype_rope, types),
          flag_axis("q_rope_apart", &Call::q_rope_apart),
          layouts_axis(),
          pages_axis(),
          masks_axis(),
          enumerator_axis("dtype_mask", &Call::dtype_mask),
          enumerator_axis("kv_encoding", &Call::kv_encoding),
          enumerator_axis("value_source", &Call::value_source),
          head_dim_pairs_axis(),
          head_ratio_axis(),
          query_tokens_axis(),
          flag_axis("has_sinks", &Call::has_sinks),
          flag_axis("returns_lse", &Call::returns_lse),
          flag_axis("batch_invariant", &Call::batch_invariant),
          modifiers_axis(),
          enumerator_axis("dtype_bias", &Call::dtype_bias),
          sparsities_axis(),
          enumerator_axis("scales_q", &Call::scales_q),
          enumerator_axis("scales_kv", &Call::scales_kv),
          enumerator_axis("scales_rope", &Call::scales_rope),
          enumerator_axis("scales_out", &Call::scales_out),
          scale_blocks_axis()};
}

std::vector<AttentionDescriptor> typical_calls(Operation operation) {
  AttentionDescriptor heads;
  heads.operation = operation;
  AttentionDescriptor latent_prefill = heads;
  latent_prefill.head_dim_qk = 192;
  latent_prefill.num_q_heads = latent_prefill.num_kv_heads = 128;
  std::vector<AttentionDescriptor> calls = {heads, latent_prefill};
  constexpr std::array heads_and_tokens = {std::pair{1, 1}, std::pair{128, 1}, std::pair{16, 32}};
  for (const auto& [num_q_heads, max_seqlen_q] : heads_and_tokens) {
    AttentionDescriptor& latent_decode = calls.emplace_back(heads);
    latent_decode.head_dim_qk = 576;
    latent_decode.head_dim_v = 512;
    latent_decode.value_source = ValueSource::prefix_of_k;
    latent_decode.num_q_heads = num_q_heads;
    latent_decode.num_kv_heads = 1;
    latent_decode.max_seqlen_q = max_seqlen_q;
  }
  return calls;
}

}  // namespace attnjit
