// Structs, tensors and descriptors of the C interface that the fuzzer's bytes made wrong, or not.
// Whatever they hold, a call may read them: sizes never say more than is there.
#pragma once

#include <cstddef>
#include <string>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "fuzz_bytes.hpp"

namespace attnjit::test {

// `descriptor` with fields, numbers or characters replaced.
std::string fuzzed_descriptor(FuzzBytes& bytes, const std::string& descriptor);

// Null, device memory, device memory that is aligned to nothing, or host memory.
void* fuzzed_address(FuzzBytes& bytes);

void fuzz_tensor(FuzzBytes& bytes, attnjit_tensor& tensor);

// Mostly the struct's size.
std::size_t fuzzed_size(FuzzBytes& bytes, std::size_t right);

float fuzzed_scale(FuzzBytes& bytes);

// A few tensors of the call.
template <typename Call>
void fuzz_tensors(FuzzBytes& bytes, const RightCall<Call>& right, Call& call) {
  for (std::size_t left = bytes.below(4); left > 0; --left) {
    fuzz_tensor(bytes, call.*right.tensors[bytes.below(right.tensors.size())].member);
  }
}

inline void fuzz_rest(FuzzBytes& bytes, attnjit_decode_call& call) {
  call.softmax_scale = fuzzed_scale(bytes);
  call.reserved = bytes.one_in(16) ? bytes.number<std::int32_t>() : 0;
}

inline void fuzz_rest(FuzzBytes& bytes, attnjit_prefill_call& call) {
  call.softmax_scale = fuzzed_scale(bytes);
  call.softcap = bytes.one_in(4) ? fuzzed_scale(bytes) : 0.0F;
}

inline void fuzz_rest(FuzzBytes& bytes, attnjit_sparse_mla_call& call) {
  call.softmax_scale = fuzzed_scale(bytes);
  call.reserved = bytes.one_in(16) ? bytes.number<std::int32_t>() : 0;
}

inline void fuzz_rest(FuzzBytes&, attnjit_append_kv_cache_call&) {}

inline void fuzz_rest(FuzzBytes& bytes, attnjit_merge_states_call& call) {
  // No more parts than there are, unless the count alone is refused.
  call.num_partials = bytes.one_in(4) ? bytes.pick<std::size_t>({0, 1, 33, SIZE_MAX}) : 2;
  call.partials = bytes.one_in(16) ? nullptr : call.partials;
}

template <typename Call>
Call fuzzed_call(FuzzBytes& bytes, const RightCall<Call>& right) {
  Call call = right.call;
  fuzz_tensors(bytes, right, call);
  fuzz_rest(bytes, call);
  call.struct_size = fuzzed_size(bytes, sizeof call);
  return call;
}

}  // namespace attnjit::test
