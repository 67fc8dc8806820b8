// The rules of what is served of what is legal. To serve a new axis, remove its row.
#include <array>

#include "attnjit/descriptor_validation.hpp"
#include "descriptor_predicates.hpp"

namespace attnjit {
namespace {

using D = const AttentionDescriptor&;

bool reads_keys(Operation operation) {
  return operation != Operation::append_kv_cache && operation != Operation::merge_states;
}

const std::array support = {
    DescriptorRule{"dtype_q", "only bf16, fp16 and, by prefill, fp8_e4m3 are served",
                   "cast q to bf16 or fp16",
                   [](D d) {
                     return !is_half(d.dtype_q) &&
                            !(is_prefill(d.operation) && d.dtype_q == DataType::fp8_e4m3);
                   }},
    DescriptorRule{"dtype_kv",
                   "must equal dtype_q for decode, and for token-sparse MLA of plain tokens",
                   "store the KV cache in the type of q, or use operation prefill_kvcache",
                   [](D d) {
                     return reads_keys(d.operation) && !is_prefill(d.operation) &&
                            d.dtype_kv != d.dtype_q && !is_encoded(d);
                   }},
    DescriptorRule{"dtype_kv",
                   "must equal dtype_q, or be fp8 under a q of bf16 or fp8_e4m3, for prefill",
                   "store the KV cache in the type of q, or cast q to bf16",
                   [](D d) {
                     return is_prefill(d.operation) && d.dtype_kv != d.dtype_q &&
                            !(is_fp8(d.dtype_kv) && d.dtype_q != DataType::fp16);
                   }},
    DescriptorRule{"dtype_kv", "must equal dtype_q or be fp8 for append_kv_cache",
                   "store the KV cache in the type of the new K and V, or in fp8",
                   [](D d) {
                     return d.operation == Operation::append_kv_cache && d.dtype_kv != d.dtype_q &&
                            !is_fp8(d.dtype_kv);
                   }},
    DescriptorRule{"dtype_out", "must equal dtype_q unless the operation is a prefill",
                   "ask for the type of q and cast afterwards",
                   [](D d) { return !is_prefill(d.operation) && d.dtype_out != d.dtype_q; }},
    DescriptorRule{
        "mask",
        "only none, causal, sliding_window, materialized_bool and materialized_additive are served "
        "by decode",
        "use operation prefill_kvcache, or express the mask as a materialized one",
        [](D d) {
          return !is_prefill(d.operation) && d.mask != MaskKind::none &&
                 d.mask != MaskKind::causal && d.mask != MaskKind::sliding_window &&
                 d.mask != MaskKind::materialized_bool && d.mask != MaskKind::materialized_additive;
        }},
    DescriptorRule{
        "score_modifier", "only none is served by decode",
        "use operation prefill_kvcache, or fold the modifier into an additive mask",
        [](D d) { return !is_prefill(d.operation) && d.score_modifier != ScoreModifier::none; }},
    DescriptorRule{"sparsity", "only none is served by decode",
                   "use operation prefill_kvcache, or a materialized mask",
                   [](D d) { return !is_prefill(d.operation) && d.sparsity == Sparsity::block; }},
    DescriptorRule{"scales_kv", "only none, per_tensor and per_head are served by append_kv_cache",
                   "give a scale per head, or none",
                   [](D d) {
                     return d.operation == Operation::append_kv_cache &&
                            d.scales_kv != ScaleGrain::none &&
                            d.scales_kv != ScaleGrain::per_tensor &&
                            d.scales_kv != ScaleGrain::per_head;
                   }},
    DescriptorRule{
        "scales_out", "only none and per_tensor are served", "give one scale for all of out",
        [](D d) {
          return d.scales_out != ScaleGrain::none && d.scales_out != ScaleGrain::per_tensor;
        }},
    DescriptorRule{
        "kv_encoding", "only plain is served but by sparse_mla_decode",
        "store the cache in columns of one type, or name its tokens in indices",
        [](D d) { return is_encoded(d) && d.operation != Operation::sparse_mla_decode; }},
    DescriptorRule{"dtype_q", "must be bf16 unless kv_encoding is plain",
                   "cast q to bf16, the type of an encoded token's rope",
                   [](D d) { return is_encoded(d) && d.dtype_q == DataType::fp16; }},
};

}  // namespace

std::span<const DescriptorRule> support_rules() {
  return support;
}

}  // namespace attnjit
