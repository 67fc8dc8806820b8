// What a user may put in place of default code, each a slot that rendering fills with an expression
// (mask_expression, score_expression of a descriptor). Included by kernels/prefill_sm80.cu through
// its masks and modifiers.
//
// b is the request and h the query head. q and k are the positions of query and key, which causal
// masks compare: without positions of its own, key j of a request is at j, and its last query at
// the last key. seqlen_q and seqlen_kv count the request's queries and keys.
#pragma once

// Whether the query sees the key. Asked of every key that no other mask hides by its place.
// slot mask_predicate
__device__ __forceinline__ bool mask_predicate([[maybe_unused]] int b, [[maybe_unused]] int h,
                                               [[maybe_unused]] int q, [[maybe_unused]] int k,
                                               [[maybe_unused]] int seqlen_q,
                                               [[maybe_unused]] int seqlen_kv) {
  return true;
}
// end slot

// What becomes of a score, which is scaled and in natural units, before masks. Also asked of keys
// that are hidden, whose scores it cannot show again.
// slot score_modifier
__device__ __forceinline__ float score_modifier(float score, [[maybe_unused]] int b,
                                                [[maybe_unused]] int h, [[maybe_unused]] int q,
                                                [[maybe_unused]] int k,
                                                [[maybe_unused]] int seqlen_q,
                                                [[maybe_unused]] int seqlen_kv) {
  return score;
}
// end slot
