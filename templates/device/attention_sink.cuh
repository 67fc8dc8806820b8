// An attention sink: a logit per query head that joins the softmax's denominator and nothing else.
// Applied once per row: by the attention kernel to the output of a request that is not split, by
// the combine kernel to that of one that is. The LSE leaves it out.
#pragma once

#include "device/softmax_math.cuh"

// A head's sink in units of log2; 0 without sinks. Rounded by itself, so that it does not depend on
// what the compiler makes of the place.
template <bool has_sinks>
__device__ __forceinline__ float load_sink(const float* sinks, int head) {
  return has_sinks ? __fmul_rn(sinks[head], log2_e) : 0.0f;
}

// What the weighted sum of values of a row that sees something is divided by: `sum`, relative to
// `maximum`, and the head's sink. Infinite for a sink far above all scores.
template <bool has_sinks>
__device__ __forceinline__ float denominator(float sink, float maximum, float sum) {
  return has_sinks ? sum + exp2_approximate(sink - maximum) : sum;
}
