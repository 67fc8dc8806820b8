#include "attnjit/attention_descriptor.hpp"

#include <fmt/format.h>

#include "attnjit/mask_formula.hpp"
#include "attnjit/shown_text.hpp"

namespace attnjit {

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::decode:
      return "decode";
    case Operation::prefill:
      return "prefill";
    case Operation::prefill_kvcache:
      return "prefill_kvcache";
    case Operation::mla_prefill_rope:
      return "mla_prefill_rope";
    case Operation::sparse_mla_decode:
      return "sparse_mla_decode";
    case Operation::sparse_mla_prefill:
      return "sparse_mla_prefill";
    case Operation::append_kv_cache:
      return "append_kv_cache";
    case Operation::merge_states:
      return "merge_states";
  }
  return "";
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::bf16:
      return "bf16";
    case DataType::fp16:
      return "fp16";
    case DataType::fp32:
      return "fp32";
    case DataType::fp8_e4m3:
      return "fp8_e4m3";
    case DataType::fp8_e5m2:
      return "fp8_e5m2";
    case DataType::uint8:
      return "uint8";
    case DataType::int32:
      return "int32";
    case DataType::int64:
      return "int64";
  }
  return "";
}

std::string_view to_string(KvLayout value) {
  switch (value) {
    case KvLayout::paged:
      return "paged";
    case KvLayout::ragged:
      return "ragged";
    case KvLayout::dense:
      return "dense";
  }
  return "";
}

std::string_view to_string(KvLayoutTag value) {
  switch (value) {
    case KvLayoutTag::nhd:
      return "nhd";
    case KvLayoutTag::hnd:
      return "hnd";
    case KvLayoutTag::bshd:
      return "bshd";
    case KvLayoutTag::bhsd:
      return "bhsd";
    case KvLayoutTag::thd:
      return "thd";
  }
  return "";
}

std::string_view to_string(ValueSource value) {
  switch (value) {
    case ValueSource::separate:
      return "separate";
    case ValueSource::prefix_of_k:
      return "prefix_of_k";
  }
  return "";
}

std::string_view to_string(MaskKind value) {
  switch (value) {
    case MaskKind::none:
      return "none";
    case MaskKind::causal:
      return "causal";
    case MaskKind::sliding_window:
      return "sliding_window";
    case MaskKind::chunked:
      return "chunked";
    case MaskKind::chunked_causal:
      return "chunked_causal";
    case MaskKind::prefix_lm:
      return "prefix_lm";
    case MaskKind::document:
      return "document";
    case MaskKind::tree:
      return "tree";
    case MaskKind::materialized_bool:
      return "materialized_bool";
    case MaskKind::materialized_additive:
      return "materialized_additive";
    case MaskKind::materialized_bits:
      return "materialized_bits";
    case MaskKind::custom:
      return "custom";
    case MaskKind::composed:
      return "composed";
  }
  return "";
}

std::string_view to_string(ScoreModifier value) {
  switch (value) {
    case ScoreModifier::none:
      return "none";
    case ScoreModifier::softcap:
      return "softcap";
    case ScoreModifier::alibi:
      return "alibi";
    case ScoreModifier::additive_bias:
      return "additive_bias";
    case ScoreModifier::custom:
      return "custom";
  }
  return "";
}

std::string_view to_string(Sparsity value) {
  switch (value) {
    case Sparsity::none:
      return "none";
    case Sparsity::block:
      return "block";
    case Sparsity::token:
      return "token";
  }
  return "";
}

std::string_view to_string(KvEncoding value) {
  switch (value) {
    case KvEncoding::plain:
      return "plain";
    case KvEncoding::fp8_656:
      return "fp8_656";
    case KvEncoding::fp8_584:
      return "fp8_584";
  }
  return "";
}

std::string_view to_string(ScaleGrain value) {
  switch (value) {
    case ScaleGrain::none:
      return "none";
    case ScaleGrain::per_tensor:
      return "per_tensor";
    case ScaleGrain::per_head:
      return "per_head";
    case ScaleGrain::per_token:
      return "per_token";
    case ScaleGrain::per_block:
      return "per_block";
  }
  return "";
}

std::string describe_mask(const AttentionDescriptor& descriptor) {
  const std::string window =
      has_mask(descriptor, MaskKind::sliding_window)
          ? fmt::format(" {}/{}", descriptor.window_left, descriptor.window_right)
          : "";
  const std::string mask = descriptor.mask == MaskKind::composed
                               ? fmt::format("({})", shown_text(descriptor.mask_formula))
                               : std::string(to_string(descriptor.mask));
  constexpr std::size_t most_shown = 40;  // bytes of an expression
  const std::string expression =
      descriptor.mask_expression.empty()
          ? ""
          : fmt::format(" \"{}\"", shown_text(descriptor.mask_expression, most_shown));
  return fmt::format("{}{}{}{}", mask, window, expression, descriptor.has_sinks ? ", sinks" : "");
}

std::string describe_types(const AttentionDescriptor& descriptor) {
  const DataType q = descriptor.dtype_q;
  const DataType kv = descriptor.dtype_kv;
  const DataType out = descriptor.dtype_out;
  std::string text = q == kv && kv == out
                         ? std::string(to_string(q))
                         : fmt::format("{}/{}/{}", to_string(q), to_string(kv), to_string(out));
  constexpr ScaleGrain none = ScaleGrain::none;
  if (descriptor.scales_q != none || descriptor.scales_kv != none) {
    text += fmt::format(" scales {}/{}", to_string(descriptor.scales_q),
                        to_string(descriptor.scales_kv));
  }
  if (descriptor.operation == Operation::mla_prefill_rope &&
      size_bytes(descriptor.dtype_rope) == 1) {
    text += fmt::format(" rope {}{}", to_string(descriptor.dtype_rope),
                        descriptor.scales_rope == none
                            ? std::string()
                            : fmt::format("/{}", to_string(descriptor.scales_rope)));
  }
  return text + (descriptor.scale_block > 0 ? fmt::format(" {}", descriptor.scale_block) : "");
}

int size_bytes(DataType type) {
  switch (type) {
    case DataType::bf16:
    case DataType::fp16:
      return 2;
    case DataType::fp32:
    case DataType::int32:
      return 4;
    case DataType::int64:
      return 8;
    case DataType::fp8_e4m3:
    case DataType::fp8_e5m2:
    case DataType::uint8:
      return 1;
  }
  return 0;
}

}  // namespace attnjit
