// What happens to a score before the softmax, besides its scale.
#pragma once

#include "kernel_config.cuh"

#include "device/key_interval.cuh"
#include "device/numeric_types.cuh"
#include "device/prefill_work.cuh"
#include "device/softmax_math.cuh"
#include "device/user_slots.cuh"

// Whether the softmax scales the products of q and k by itself, in one instruction with the
// subtraction of the maximum. Otherwise they are brought to units of log2 first.
constexpr bool softmax_scales = config::score_modifier == ScoreModifier::none && !mask_is_additive;

// What the softmax multiplies scores by: products of a negative scale change their sign before, and
// 0 is replaced, for 0 times -inf is not 0.
__device__ __forceinline__ float softmax_factor(float softmax_scale) {
  const float factor = fabsf(softmax_scale) * log2_e;
  return !softmax_scales ? 1.0f : factor < 1e-30f ? 1e-30f : factor;  // NaN stays NaN
}

// tanh(x) within 4e-7 of its value; tanh.approx has errors of 5e-4. Near 0 a polynomial in x^2
// (Chebyshev fit of tanh(x) / x, error 6e-8), where the exponential would cancel.
__device__ __forceinline__ float accurate_tanh(float x) {
  const float square = x * x;
  float ratio = fmaf(0.0171413198f, square, -0.0529892407f);
  ratio = fmaf(ratio, square, 0.133248284f);
  ratio = fmaf(ratio, square, -0.333330721f);
  ratio = fmaf(ratio, square, 1.0f);
  const float by_exponential =
      1.0f - 2.0f * reciprocal_approximate(exp2_approximate(2.0f * log2_e * x) + 1.0f);
  return fabsf(x) < 0.5f ? x * ratio : by_exponential;
}

// A row's share of the modifier, the same for all keys.
struct RowModifier {
  float slope;         // in units of log2
  int query_place;     // among the keys
  int head;            // query head
  long long bias_row;  // element of an additive bias
  int bias_keys;       // that it covers of this row
};

__device__ __forceinline__ RowModifier
row_modifier(const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
             int row) {
  RowModifier modifier = {};
  if constexpr (config::score_modifier == ScoreModifier::alibi) {
    modifier.slope = arguments.mask.alibi_slopes[head_of(work, row)] * log2_e;
    modifier.query_place = work.query_place + query_of(row);
  }
  if constexpr (config::score_modifier == ScoreModifier::additive_bias) {
    const attnjit::kernel_interface::MaskStrides& strides = arguments.mask.bias_strides;
    const int query = query_of(row);
    modifier.bias_row =
        work.request * strides.batch + head_of(work, row) * strides.head + query * strides.query;
    const bool is_covered = row < work.num_rows && query < arguments.mask.bias_queries;
    modifier.bias_keys = is_covered ? arguments.mask.bias_keys : 0;
  }
  if constexpr (config::score_modifier == ScoreModifier::custom) {
    modifier.query_place = work.query_place + query_of(row);
    modifier.head = head_of(work, row);
  }
  return modifier;
}

// From a product of q and k, which `scale` makes a score, to one that is in units of log2 once
// multiplied by softmax_factor.
__device__ __forceinline__ float modified_score(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
    const RowModifier& modifier, float scale, int key, float product) {
  if constexpr (config::score_modifier == ScoreModifier::softcap) {
    const float cap = arguments.mask.softcap;
    return cap * log2_e * accurate_tanh(product * scale / cap);
  } else if constexpr (config::score_modifier == ScoreModifier::alibi) {
    const int distance = modifier.query_place - key;
    return product * (scale * log2_e) -
           modifier.slope * static_cast<float>(distance < 0 ? -distance : distance);
  } else if constexpr (config::score_modifier == ScoreModifier::additive_bias) {
    const float scaled = product * (scale * log2_e);
    if (key >= modifier.bias_keys)
      return scaled;
    return scaled + log2_e * load_float<config::dtype_bias>(
                                 arguments.mask.bias,
                                 modifier.bias_row + key * arguments.mask.bias_strides.key);
  } else if constexpr (config::score_modifier == ScoreModifier::custom) {
    return log2_e * score_modifier(product * scale, work.request, modifier.head,
                                   work.key_position + modifier.query_place,
                                   work.key_position + key, work.seqlen_q, work.seqlen_kv);
  } else if constexpr (softmax_scales) {
    return scale < 0.0f ? -product : product;
  } else {
    return product * (scale * log2_e);
  }
}
