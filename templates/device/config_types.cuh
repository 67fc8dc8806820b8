// The enumerators that a rendered kernel_config.cuh may name; the same names as the generator's. A
// name that is missing here is a compile error, never a silent mismatch.
#pragma once

enum class DataType { bf16, fp16, fp32, fp8_e4m3, fp8_e5m2, uint8 };
enum class ValueSource { separate, prefix_of_k };
enum class MaskKind {
  none,
  causal,
  sliding_window,
  chunked,
  chunked_causal,
  prefix_lm,
  document,
  tree,
  materialized_bool,
  materialized_additive,
  materialized_bits,
  custom,
  composed
};
enum class ScoreModifier { none, softcap, alibi, additive_bias, custom };
enum class ScaleGrain { none, per_tensor, per_head, per_token, per_block };
enum class KvEncoding { plain, fp8_656, fp8_584 };
enum class KvCopy { tensor, gather };
enum class PartialOrder { rows, accumulators, transposed };

// Masks, a bit for each.
template <typename... Kinds>
constexpr unsigned mask_set(Kinds... kinds) {
  return (0u | ... | (1u << static_cast<unsigned>(kinds)));
}

// What a composed mask shows: keys that all masks of any clause show.
struct MaskClauses {
  int count;
  unsigned masks[8];
};
