// An attention sink: a logit per query head that joins the softmax's denominator and nothing else.
// Applied once per row: by the attention kernel to the output of a request that is not split, by
// the combine kernel to that of one that is. The LSE leaves it out.
#pragma once

#include "device/softmax_math.cuh"

// What the weighted sum of values of a row that sees something is divided by: `sum`, relative to
// `maximum` in units of log2, and the head's sink. Infinite for a sink far above all scores.
template <bool has_sinks>
__device__ __forceinline__ float denominator(const float* sinks, int head, float maximum,
                                             float sum) {
  if constexpr (has_sinks) {
    return sum + exp2_approximate(sinks[head] * log2_e - maximum);
  } else {
    return sum;
  }
}
