#include "reference_attention.hpp"

#include <algorithm>

#include "attnjit/kernel_launch.hpp"
#include "attnjit/mask_formula.hpp"
#include "cache_layout.hpp"
#include "custom_expressions.hpp"
#include "random_tokens.hpp"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

// Scratch memory for the reference's scores, bytes: tiles are taken in as many launches as it
// needs.
constexpr std::int64_t most_scratch_bytes = std::int64_t{1} << 30;

int mask_meaning(MaskKind mask) {
  switch (mask) {
    case MaskKind::causal:
      return mask_causal;
    case MaskKind::sliding_window:
      return mask_window;
    case MaskKind::chunked:
      return mask_chunked;
    case MaskKind::chunked_causal:
      return mask_chunked_causal;
    case MaskKind::prefix_lm:
      return mask_prefix;
    case MaskKind::document:
      return mask_document;
    case MaskKind::tree:
      return mask_tree;
    case MaskKind::materialized_bool:
      return mask_bool;
    case MaskKind::materialized_additive:
      return mask_additive;
    case MaskKind::materialized_bits:
      return mask_bits;
    case MaskKind::custom:
      return mask_custom;
    case MaskKind::none:
    case MaskKind::composed:
      break;
  }
  return mask_none;
}

int modifier_meaning(ScoreModifier modifier) {
  switch (modifier) {
    case ScoreModifier::softcap:
      return modifier_softcap;
    case ScoreModifier::alibi:
      return modifier_alibi;
    case ScoreModifier::additive_bias:
      return modifier_bias;
    case ScoreModifier::custom:
      return modifier_custom;
    case ScoreModifier::none:
      break;
  }
  return modifier_none;
}

template <typename Value>
const Value* pointer_of(const TensorView& view) {
  return static_cast<const Value*>(view.data);
}

PairTensor pair_tensor(const TensorView& view) {
  return {.data = view.data,
          .strides = pair_strides(view),
          .queries = static_cast<int>(view.shape[2]),
          .keys = static_cast<int>(view.shape[3])};
}

SegmentIds segment_ids(const TensorView& view) {
  return {.data = pointer_of<int>(view), .batch_stride = view.rank == 2 ? view.strides[0] : 0};
}

void set_alternatives(const AttentionDescriptor& descriptor, ReferenceMask& mask) {
  for (const MaskSet clause : mask_formula_of(descriptor).clauses) {
    unsigned& alternative = mask.alternatives[mask.num_alternatives++];
    for (int i = 0; i < static_cast<int>(MaskKind::composed); ++i) {
      const auto kind = static_cast<MaskKind>(i);
      alternative |= (clause & mask_bit(kind)) != 0 ? 1U << mask_meaning(kind) : 0U;
    }
  }
}

ReferenceMask reference_mask(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  ReferenceMask mask = {};
  set_alternatives(descriptor, mask);
  if (has_mask(descriptor, MaskKind::custom)) {
    mask.custom = custom_mask_of(descriptor.mask_expression);
  }
  mask.window_left = descriptor.window_left;
  mask.window_right = descriptor.window_right;
  mask.chunk_size = descriptor.chunk_size;
  mask.pairs = pair_tensor(call.mask);
  mask.pairs_kind = element_kind(descriptor.dtype_mask);
  mask.prefix_lens = pointer_of<int>(call.prefix_lens);
  mask.q_segments = segment_ids(call.q_segments);
  mask.kv_segments = segment_ids(call.kv_segments);
  mask.blocks = pair_tensor(call.block_mask);
  mask.sparsity_block = descriptor.sparsity_block;
  mask.q_heads_per_blocks = descriptor.q_per_kv();
  if (call.block_mask.shape[1] == descriptor.num_q_heads) {
    mask.q_heads_per_blocks = 1;
  }
  return mask;
}

// Rows that an index of the batch dimension of q holds; ragged ones are all in one.
std::int64_t extent_of(const TensorView& queries) {
  return queries.rank == 3 ? queries.shape[0] : queries.shape[1];
}

}  // namespace

std::int64_t ReferenceCall::num_rows() const {
  return call.q.rank == 3 ? call.q.shape[0] : call.q.shape[0] * call.q.shape[1];
}

PrefillCall as_prefill(const DecodeCall& call) {
  PrefillCall prefill;
  prefill.q = call.q;
  prefill.k = call.k_cache;
  prefill.v = call.v_cache;
  prefill.block_table = call.block_table;
  prefill.seq_lens = call.seq_lens;
  prefill.mask = call.mask;
  prefill.sinks = call.sinks;
  prefill.out = call.out;
  prefill.lse = call.lse;
  prefill.softmax_scale = call.softmax_scale;
  return prefill;
}

ReferenceArguments make_reference_arguments(const ReferenceCall& reference) {
  const AttentionDescriptor& descriptor = reference.descriptor;
  const PrefillCall& call = reference.call;
  const bool is_prefix = descriptor.value_source == ValueSource::prefix_of_k;
  const TensorView& values = is_prefix ? call.k : call.v;
  ReferenceArguments arguments = {};
  arguments.q = call.q.data;
  arguments.k = call.k.data;
  arguments.v = values.data;
  arguments.q_strides = query_strides(call.q);
  arguments.k_strides = key_strides(descriptor, call.k);
  arguments.v_strides = key_strides(descriptor, values);
  arguments.queries = {.offsets = pointer_of<int>(call.q_offsets),
                       .lengths = pointer_of<int>(call.q_lens),
                       .extent = static_cast<int>(extent_of(call.q))};
  arguments.keys = {.offsets = pointer_of<int>(call.kv_offsets),
                    .lengths = pointer_of<int>(call.seq_lens),
                    .extent = static_cast<int>(
                        call.k.shape[descriptor.kv_layout_tag == KvLayoutTag::bhsd ? 2 : 1])};
  arguments.query_positions = pointer_of<int>(call.query_positions);
  arguments.key_positions = pointer_of<int>(call.key_positions);
  arguments.block_table = pointer_of<int>(call.block_table);
  arguments.block_table_stride = call.block_table.strides[0];
  arguments.mask = reference_mask(descriptor, call);
  arguments.modifier = modifier_meaning(descriptor.score_modifier);
  arguments.softcap = call.softcap;
  arguments.bias = pair_tensor(call.bias);
  arguments.bias_kind = element_kind(descriptor.dtype_bias);
  if (descriptor.score_modifier == ScoreModifier::custom) {
    arguments.custom_score = custom_score_of(descriptor.score_expression);
  }
  arguments.alibi_slopes = pointer_of<float>(call.alibi_slopes);
  arguments.sinks = pointer_of<float>(call.sinks);
  arguments.softmax_scale = call.softmax_scale;
  arguments.num_kv_heads = descriptor.num_kv_heads;
  arguments.head_dim_qk = descriptor.head_dim_qk;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.q_per_kv = descriptor.q_per_kv();
  arguments.page_size = descriptor.page_size;
  arguments.max_keys = std::max(1, reference.max_keys);
  arguments.kind_q = element_kind(call.q.dtype);
  arguments.kind_kv = element_kind(call.k.dtype);
  return arguments;
}

ReferenceResult compute_reference(const CheckKernels& kernels, const ReferenceCall& reference,
                                  const DeviceStream& stream) {
  constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(double));
  const AttentionDescriptor& descriptor = reference.descriptor;
  const std::int64_t results = reference.num_rows() * descriptor.num_q_heads;
  ReferenceArguments arguments = make_reference_arguments(reference);
  ReferenceResult result;
  result.out = poisoned_buffer(stream, results * descriptor.head_dim_v * element_bytes);
  result.lse = poisoned_buffer(stream, results * element_bytes);
  arguments.out = static_cast<double*>(result.out.data());
  arguments.lse = static_cast<double*>(result.lse.data());
  result.magnitude = poisoned_buffer(stream, results * element_bytes);
  arguments.magnitude = static_cast<double*>(result.magnitude.data());
  const std::int64_t tiles_per_head =
      ceil_divide(std::int64_t{reference.max_queries} * arguments.q_per_kv, reference_tile_rows);
  arguments.tiles = static_cast<int>(tiles_per_head);
  const std::int64_t tiles = tiles_per_head * descriptor.num_kv_heads * reference.batch;
  if (tiles == 0) {
    return result;
  }
  const std::int64_t tile_bytes =
      std::int64_t{reference_tile_rows} * arguments.max_keys * element_bytes;
  const std::int64_t chunk = std::clamp<std::int64_t>(most_scratch_bytes / tile_bytes, 1, tiles);
  const DeviceBuffer scores(stream.device(), static_cast<std::size_t>(chunk * tile_bytes));
  arguments.scores = static_cast<double*>(scores.data());
  for (std::int64_t first = 0; first < tiles; first += chunk) {
    arguments.first_tile = first;
    const auto blocks = static_cast<unsigned>(std::min(chunk, tiles - first));
    launch(kernels.reference_attention, {blocks, 1, 1}, stream.handle(), &arguments);
  }
  stream.synchronize();  // `scores` goes away
  return result;
}

}  // namespace attnjit::check
