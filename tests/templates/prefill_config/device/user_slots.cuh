// What the tests of prefill's device code have in place of templates/device/user_slots.cuh:
// functions in which every argument counts.
#pragma once

__device__ __forceinline__ bool mask_predicate(int b, int h, int q, int k, int seqlen_q,
                                               int seqlen_kv) {
  return ((5 * b + 3 * h + q + 2 * k + seqlen_q + 7 * seqlen_kv) & 3) != 0;
}

__device__ __forceinline__ float score_modifier(float score, int b, int h, int q, int k,
                                                int seqlen_q, int seqlen_kv) {
  return 2.0f * score + static_cast<float>(100000 * b + 10000 * h + 10 * q - k + seqlen_q) -
         static_cast<float>(1000 * seqlen_kv);
}
