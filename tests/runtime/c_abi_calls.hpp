// A call of each operation of the C interface that is right, for tests that then make one thing of
// it wrong. Its tensors lie in what the mock takes for device memory, which nothing reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_session.hpp"

namespace attnjit::test {

// Contiguous; of the i-th of many pieces of device memory.
attnjit_tensor device_tensor(int i, attnjit_dtype dtype, std::initializer_list<std::int64_t> shape);

void* device_address(int i);

template <typename Call>
struct TensorField {
  const char* name;
  attnjit_tensor Call::*member;
};

// A kernel of one operation, or a plan of it, and a call that it takes.
template <typename Call>
struct RightCall {
  const char* operation;
  const char* descriptor;
  Call call;
  std::vector<TensorField<Call>> tensors;  // all that the struct has
  std::uint64_t handle;
  std::function<attnjit_status(std::uint64_t handle, const Call*)> run;

  attnjit_status operator()(const Call& changed) const { return run(handle, &changed); }
};

// Whether `tensors` are all that the struct has: what is left has no room for another.
template <typename Call>
bool names_all_tensors(const RightCall<Call>& right) {
  const attnjit_tensor* last = nullptr;
  for (const TensorField<Call>& field : right.tensors) {
    const attnjit_tensor* tensor = &(right.call.*field.member);
    if (last != nullptr && tensor <= last) {
      return false;
    }
    last = tensor;
  }
  return sizeof(Call) - right.tensors.size() * sizeof(attnjit_tensor) < sizeof(attnjit_tensor);
}

extern const char* const mla_decode;      // 16 heads: swapped_decode_sm90
extern const char* const gqa_decode;      // paged_decode_sm80
extern const char* const ragged_prefill;  // causal GQA
extern const char* const paged_prefill;   // operation prefill_kvcache
extern const char* const rope_prefill;    // operation mla_prefill_rope
extern const char* const sparse_decode;   // of tokens of 656 bytes
extern const char* const sparse_prefill;
extern const char* const append_to_cache;
extern const char* const merge_of_parts;

// Of 2 requests; the plan is updated already.
constexpr int decode_batch = 2;
RightCall<attnjit_decode_call> right_mla_decode(CAbiSession& session);
RightCall<attnjit_decode_call> right_gqa_decode(CAbiSession& session);
RightCall<attnjit_prefill_call> right_ragged_prefill(CAbiSession& session);
RightCall<attnjit_prefill_call> right_paged_prefill(CAbiSession& session);
RightCall<attnjit_prefill_call> right_rope_prefill(CAbiSession& session);
RightCall<attnjit_sparse_mla_call> right_sparse_decode(CAbiSession& session);
RightCall<attnjit_sparse_mla_call> right_sparse_prefill(CAbiSession& session);
RightCall<attnjit_append_kv_cache_call> right_append(CAbiSession& session);

// Of two parts, which the struct points to.
RightCall<attnjit_merge_states_call> right_merge(CAbiSession& session);

// `visit` is called with each of them.
template <typename Visit>
void for_each_right_call(CAbiSession& session, const Visit& visit) {
  visit(right_mla_decode(session));
  visit(right_gqa_decode(session));
  visit(right_ragged_prefill(session));
  visit(right_paged_prefill(session));
  visit(right_rope_prefill(session));
  visit(right_sparse_decode(session));
  visit(right_sparse_prefill(session));
  visit(right_append(session));
  visit(right_merge(session));
}

// Ends the kernel or plan of a right call.
template <typename Call>
attnjit_status release(const RightCall<Call>& right) {
  return std::is_same_v<Call, attnjit_decode_call> ? attnjit_plan_destroy(right.handle)
                                                   : attnjit_kernel_release(right.handle);
}

}  // namespace attnjit::test
