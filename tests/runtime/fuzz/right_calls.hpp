// What the fuzzed process has from its beginning: a cache with the kernels of every operation, a
// runtime over it that may not compile, and right calls. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "cache/scratch_directory.hpp"

namespace attnjit::test {

struct RightCalls {
  RightCalls();

  ScratchDirectory scratch;
  std::string cache;
  std::unique_ptr<CAbiSession> session;
  std::vector<const char*> descriptors = {mla_decode,     gqa_decode,      ragged_prefill,
                                          paged_prefill,  rope_prefill,    sparse_decode,
                                          sparse_prefill, append_to_cache, merge_of_parts};
  std::vector<RightCall<attnjit_decode_call>> decodes;
  std::vector<RightCall<attnjit_prefill_call>> prefills;
  std::vector<RightCall<attnjit_sparse_mla_call>> sparse_mlas;
  std::vector<RightCall<attnjit_append_kv_cache_call>> appends;
  std::vector<RightCall<attnjit_merge_states_call>> merges;
};

// Made at the first call.
RightCalls& right_calls();

}  // namespace attnjit::test
