#include "prefill_arguments.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "attnjit/mask_formula.hpp"
#include "prefill_keys.hpp"
#include "prefill_scales.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

bool is_ragged(const TensorView& q) {
  return q.rank == 3;
}

bool has_bits(const AttentionDescriptor& descriptor) {
  return has_mask(descriptor, MaskKind::materialized_bits) || has_mask(descriptor, MaskKind::tree);
}

bool reads_mask(const AttentionDescriptor& descriptor) {
  return has_bits(descriptor) || has_mask(descriptor, MaskKind::materialized_bool) ||
         has_mask(descriptor, MaskKind::materialized_additive);
}

// "causal", or "composed of causal and document".
std::string mask_name(const AttentionDescriptor& descriptor) {
  return descriptor.mask == MaskKind::composed
             ? fmt::format("composed of {}", to_string(mask_formula_of(descriptor)))
             : std::string(to_string(descriptor.mask));
}

// Checks that a tensor is there exactly if the descriptor asks for it. True if it is to be checked.
bool is_asked_for(TensorChecks& checks, std::string_view name, const TensorView& view,
                  bool is_needed, std::string_view axis, std::string_view value) {
  if (!is_needed) {
    require_absent(checks, name, view,
                   fmt::format("the descriptor's {} is {}, which does not read it", axis, value),
                   fmt::format("leave it out, or prepare a descriptor with another {}", axis));
  }
  return is_needed;
}

void check_queries(TensorChecks& checks, const AttentionDescriptor& descriptor,
                   const PrefillCall& call, std::int64_t batch) {
  const int heads = descriptor.num_q_heads;
  constexpr std::int64_t any = TensorChecks::any;
  const int rope = descriptor.q_rope_apart ? descriptor.head_dim_qk - descriptor.head_dim_v : 0;
  const int columns = descriptor.head_dim_qk - rope;
  if (rope == 0) {
    require_absent(checks, "q_rope", call.q_rope, "q has all columns",
                   "leave it out, or prepare a descriptor with q_rope_apart");
  }
  if (is_ragged(call.q)) {
    check_rows(checks, "q", call.q, descriptor.dtype_q, {any, heads, columns});
    if (rope > 0) {
      check_rows(checks, "q_rope", call.q_rope, descriptor.dtype_rope,
                 {call.q.shape[0], heads, rope});
    }
    check_output(checks, "out", call.out, descriptor.dtype_out,
                 {call.q.shape[0], heads, descriptor.head_dim_v});
    if (call.lse.data != nullptr &&
        checks.require_shape("lse", call.lse, DataType::fp32, {heads, call.q.shape[0]})) {
      checks.require_distinct("lse", call.lse);
    }
    check_numbers(checks, "q_offsets", call.q_offsets, DataType::int32, {batch + 1});
    require_absent(checks, "q_lens", call.q_lens, "q_offsets say where a ragged q's requests end",
                   "leave it out, or pass a dense q");
    return;
  }
  check_rows(checks, "q", call.q, descriptor.dtype_q, {any, any, heads, columns});
  if (rope > 0) {
    check_rows(checks, "q_rope", call.q_rope, descriptor.dtype_rope,
               {batch, call.q.shape[1], heads, rope});
  }
  check_output(checks, "out", call.out, descriptor.dtype_out,
               {batch, call.q.shape[1], heads, descriptor.head_dim_v});
  if (call.lse.data != nullptr &&
      checks.require_shape("lse", call.lse, DataType::fp32, {batch, heads, call.q.shape[1]})) {
    checks.require_distinct("lse", call.lse);
  }
  require_absent(checks, "q_offsets", call.q_offsets, "q is dense, of rank 4",
                 "leave it out, or pass q as [total_q, num_q_heads, head_dim_qk]");
  if (call.q_lens.data != nullptr) {
    check_numbers(checks, "q_lens", call.q_lens, DataType::int32, {batch});
  }
}

void check_mask(TensorChecks& checks, const AttentionDescriptor& descriptor,
                const PrefillCall& call, std::int64_t batch) {
  const TensorView& mask = call.mask;
  if (!is_asked_for(checks, "mask", mask, reads_mask(descriptor), "mask", mask_name(descriptor))) {
    return;
  }
  const auto full_or_one = [&](std::size_t dimension, std::int64_t full) {
    return mask.shape.at(dimension) == 1 ? 1 : full;
  };
  if (!checks.require_shape("mask", mask, descriptor.dtype_mask,
                            {full_or_one(0, batch), full_or_one(1, descriptor.num_q_heads),
                             TensorChecks::any, TensorChecks::any})) {
    return;
  }
  checks.require_readable("mask", mask);
  checks.require_some("mask", mask, 3);
  const bool covers_all =
      mask.shape[2] == 1 || is_ragged(call.q) || mask.shape[2] >= call.q.shape[1];
  if (!covers_all) {
    checks.add("mask", describe(mask), fmt::format("must cover 1 or {} queries", call.q.shape[1]),
               "pad the mask, or recompute it with the right length");
  }
  if (has_bits(descriptor) && mask.shape[3] > 1 && mask.strides[3] != 1) {
    checks.add("mask", describe(mask), "must have stride 1 in its last dimension, packed bits",
               "make the mask contiguous");
  }
}

void check_mask_inputs(TensorChecks& checks, const AttentionDescriptor& descriptor,
                       const PrefillCall& call, std::int64_t batch) {
  const std::string mask = mask_name(descriptor);
  check_mask(checks, descriptor, call, batch);
  if (is_asked_for(checks, "prefix_lens", call.prefix_lens,
                   has_mask(descriptor, MaskKind::prefix_lm), "mask", mask)) {
    check_numbers(checks, "prefix_lens", call.prefix_lens, DataType::int32, {batch});
  }
  const bool is_document = has_mask(descriptor, MaskKind::document);
  if (is_asked_for(checks, "q_segments", call.q_segments, is_document, "mask", mask)) {
    if (is_ragged(call.q)) {
      check_numbers(checks, "q_segments", call.q_segments, DataType::int32, {call.q.shape[0]});
    } else if (check_numbers(checks, "q_segments", call.q_segments, DataType::int32,
                             {batch, call.q.shape[1]})) {
      checks.require_strides("q_segments", call.q_segments, call.q.shape[1], 4);
    }
  }
  if (is_asked_for(checks, "kv_segments", call.kv_segments, is_document, "mask", mask)) {
    const std::int64_t tokens = key_extent(descriptor, call);
    if (key_layout(descriptor) == KvLayout::ragged) {
      check_numbers(checks, "kv_segments", call.kv_segments, DataType::int32, {tokens});
    } else {
      const bool is_paged = key_layout(descriptor) == KvLayout::paged;
      check_numbers(checks, "kv_segments", call.kv_segments, DataType::int32,
                    {batch, is_paged ? TensorChecks::any : tokens});
    }
  }
}

// Covers the queries and keys of dense tensors, whose extents are known here.
void check_bias(TensorChecks& checks, const AttentionDescriptor& descriptor,
                const PrefillCall& call, std::int64_t batch) {
  const TensorView& bias = call.bias;
  if (!is_asked_for(checks, "bias", bias, descriptor.score_modifier == ScoreModifier::additive_bias,
                    "score_modifier", to_string(descriptor.score_modifier))) {
    return;
  }
  const bool is_dense = key_layout(descriptor) == KvLayout::dense;
  if (!checks.require_shape(
          "bias", bias, descriptor.dtype_bias,
          {bias.shape[0] == 1 ? 1 : batch, bias.shape[1] == 1 ? 1 : descriptor.num_q_heads,
           TensorChecks::any, TensorChecks::any})) {
    return;
  }
  checks.require_readable("bias", bias);
  checks.require_some("bias", bias, 3);
  const std::int64_t queries = is_ragged(call.q) ? 0 : call.q.shape[1];
  const std::int64_t keys = is_dense ? key_extent(descriptor, call) : 0;
  if ((bias.shape[2] != 1 && bias.shape[2] < queries) || bias.shape[3] < keys) {
    checks.add("bias", describe(bias),
               fmt::format("must cover 1 or {} queries and {} keys", queries, keys),
               "pad the bias, or recompute it with the right lengths");
  }
}

void check_modifiers(TensorChecks& checks, const AttentionDescriptor& descriptor,
                     const PrefillCall& call) {
  const std::string_view modifier = to_string(descriptor.score_modifier);
  if (is_asked_for(checks, "alibi_slopes", call.alibi_slopes,
                   descriptor.score_modifier == ScoreModifier::alibi, "score_modifier", modifier)) {
    check_numbers(checks, "alibi_slopes", call.alibi_slopes, DataType::fp32,
                  {descriptor.num_q_heads});
  }
  const bool has_softcap = descriptor.score_modifier == ScoreModifier::softcap;
  if (has_softcap ? !(call.softcap > 0.0F && std::isfinite(call.softcap)) : call.softcap != 0.0F) {
    checks.add("softcap", fmt::format("{}", call.softcap),
               has_softcap
                   ? std::string("must be positive and finite")
                   : fmt::format("must be 0: the descriptor's score_modifier is {}", modifier),
               has_softcap ? "give the c of c * tanh(score / c)"
                           : "leave it out, or prepare a descriptor with score_modifier softcap");
  }
}

// Heads of a block layout: one row of blocks for all, or one per kv head or query head.
std::int64_t expected_block_heads(const AttentionDescriptor& descriptor, std::int64_t given) {
  const bool is_allowed = given == 1 || given == descriptor.num_kv_heads;
  return is_allowed ? given : descriptor.num_q_heads;
}

// Where a layout has one entry for all requests, or heads, or each.
void check_block_extents(TensorChecks& checks, std::string_view name, const TensorView& blocks,
                         const AttentionDescriptor& descriptor, std::int64_t batch, DataType dtype,
                         bool is_compressed) {
  const std::int64_t requests = blocks.shape[0] == 1 ? 1 : batch;
  const std::int64_t heads = expected_block_heads(descriptor, blocks.shape[1]);
  constexpr std::int64_t any = TensorChecks::any;
  const bool fits = is_compressed
                        ? checks.require_shape(name, blocks, dtype, {requests, heads, any})
                        : checks.require_shape(name, blocks, dtype, {requests, heads, any, any});
  if (fits) {
    checks.require_readable(name, blocks);
  }
  if (fits && is_compressed) {
    checks.require_some(name, blocks, 2);
  }
}

void check_blocks(TensorChecks& checks, const AttentionDescriptor& descriptor,
                  const PrefillCall& call, std::int64_t batch) {
  const bool has_blocks = descriptor.sparsity == Sparsity::block;
  const std::string_view sparsity = to_string(descriptor.sparsity);
  const bool is_compressed = has_blocks && call.block_rows.data != nullptr;
  if (is_compressed) {
    require_absent(checks, "block_mask", call.block_mask, "block_rows say what is looked at",
                   "pass one of the two");
    check_block_extents(checks, "block_rows", call.block_rows, descriptor, batch, DataType::int32,
                        true);
    check_numbers(checks, "block_columns", call.block_columns, DataType::int32,
                  {TensorChecks::any});
    return;
  }
  is_asked_for(checks, "block_rows", call.block_rows, has_blocks, "sparsity", sparsity);
  require_absent(checks, "block_columns", call.block_columns, "block_rows are not given",
                 "pass both, or neither");
  if (is_asked_for(checks, "block_mask", call.block_mask, has_blocks, "sparsity", sparsity)) {
    check_block_extents(checks, "block_mask", call.block_mask, descriptor, batch, DataType::uint8,
                        false);
  }
}

RequestTokens query_tokens(const PrefillCall& call) {
  return {static_cast<const int*>(call.q_offsets.data), static_cast<const int*>(call.q_lens.data),
          is_ragged(call.q) ? 0 : bounded_extent(call.q.shape[1])};
}

// Of [num_q_heads, total_q], or [batch, num_q_heads, seqlen_q].
QueryStrides lse_strides(const TensorView& lse) {
  return lse.rank == 2 ? QueryStrides{0, lse.strides[1], lse.strides[0]}
                       : QueryStrides{lse.strides[0], lse.strides[2], lse.strides[1]};
}

void set_blocks(const AttentionDescriptor& descriptor, const PrefillCall& call, PrefillMask& mask) {
  const bool is_compressed = call.block_rows.data != nullptr;
  const TensorView& layout = is_compressed ? call.block_rows : call.block_mask;
  mask.blocks = static_cast<const unsigned char*>(call.block_mask.data);
  mask.block_rows = static_cast<const int*>(call.block_rows.data);
  mask.block_columns = static_cast<const int*>(call.block_columns.data);
  mask.block_strides = {broadcast_stride(layout, 0), broadcast_stride(layout, 1), layout.strides[2],
                        layout.strides[3]};
  const bool is_per_query_head = layout.shape[1] == descriptor.num_q_heads;
  mask.block_heads = is_per_query_head ? descriptor.q_per_kv() : 1;
  mask.query_blocks = bounded_extent(layout.shape[2] - (is_compressed ? 1 : 0));
  mask.key_blocks = is_compressed ? INT32_MAX : bounded_extent(layout.shape[3]);
}

void set_bias(const PrefillCall& call, PrefillMask& mask) {
  mask.bias = call.bias.data;
  mask.bias_strides = mask_strides(call.bias);
  mask.bias_queries = call.bias.shape[2] == 1 ? INT32_MAX : bounded_extent(call.bias.shape[2]);
  mask.bias_keys = bounded_extent(call.bias.shape[3]);
}

PrefillMask make_mask(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  PrefillMask mask = {};
  mask.mask = call.mask.data;
  mask.strides = mask_strides(call.mask);
  mask.queries = call.mask.shape[2] == 1 ? INT32_MAX : bounded_extent(call.mask.shape[2]);
  mask.keys = bounded_extent(call.mask.shape[3] * (has_bits(descriptor) ? 8 : 1));
  if (has_mask(descriptor, MaskKind::document)) {
    const bool is_batched = call.kv_segments.rank == 2;
    mask.segment_keys = is_batched ? bounded_extent(call.kv_segments.shape[1]) : INT32_MAX;
    mask.kv_segment_stride = is_batched ? call.kv_segments.strides[0] : 0;
  }
  mask.prefix_lens = static_cast<const int*>(call.prefix_lens.data);
  mask.q_segments = static_cast<const int*>(call.q_segments.data);
  mask.kv_segments = static_cast<const int*>(call.kv_segments.data);
  mask.alibi_slopes = static_cast<const float*>(call.alibi_slopes.data);
  mask.softcap = call.softcap;
  set_blocks(descriptor, call, mask);
  set_bias(call, mask);
  return mask;
}

}  // namespace

std::int64_t batch_of(const PrefillCall& call) {
  return is_ragged(call.q) ? std::max<std::int64_t>(call.q_offsets.shape[0] - 1, 0)
                           : call.q.shape[0];
}

void check_prefill_call(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  TensorChecks checks;
  const std::int64_t batch = batch_of(call);
  check_queries(checks, descriptor, call, batch);
  check_prefill_keys(checks, descriptor, call, batch);
  for (const auto& [name, view] : {std::pair{"query_positions", &call.query_positions},
                                   std::pair{"key_positions", &call.key_positions}}) {
    if (view->data != nullptr) {
      check_numbers(checks, name, *view, DataType::int32, {batch});
    }
  }
  check_prefill_scales(checks, descriptor, call, batch);
  check_mask_inputs(checks, descriptor, call, batch);
  check_modifiers(checks, descriptor, call);
  check_bias(checks, descriptor, call, batch);
  check_blocks(checks, descriptor, call, batch);
  check_sinks(checks, descriptor, call.sinks);
  check_softmax_scale(checks, call.softmax_scale);
  checks.finish();
}

PrefillArguments make_prefill_arguments(const AttentionDescriptor& descriptor,
                                        const PrefillCall& call) {
  PrefillArguments arguments = {};
  arguments.q = call.q.data;
  arguments.out = call.out.data;
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.q_rope = call.q_rope.data;
  arguments.q_strides = query_strides(call.q);
  arguments.q_rope_strides = query_strides(call.q_rope);
  arguments.out_strides = query_strides(call.out);
  arguments.lse_strides = lse_strides(call.lse);
  arguments.queries = query_tokens(call);
  set_prefill_keys(descriptor, call, arguments);
  set_prefill_scales(descriptor, call, arguments);
  arguments.query_positions = static_cast<const int*>(call.query_positions.data);
  arguments.key_positions = static_cast<const int*>(call.key_positions.data);
  arguments.mask = make_mask(descriptor, call);
  arguments.sinks = static_cast<const float*>(call.sinks.data);
  arguments.softmax_scale = call.softmax_scale;
  arguments.batch = static_cast<int>(batch_of(call));
  arguments.num_kv_heads = descriptor.num_kv_heads;
  return arguments;
}

}  // namespace attnjit
