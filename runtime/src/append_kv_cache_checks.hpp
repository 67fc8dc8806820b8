// The one place where the arguments of a cache write are checked. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/append_kv_cache.hpp"

namespace attnjit {

// What the shapes of a call come to.
struct AppendSizes {
  std::int64_t batch = 0;  // TensorChecks::any if nothing says which request a token is of
  std::int64_t num_tokens = 0;
  std::int64_t tokens_per_batch = 0;  // of k_new: seqlen_new, or all
};

// Throws ArgumentError listing everything that is wrong with `call`, or what makes the rest
// uncheckable.
AppendSizes check_append_call(const AttentionDescriptor& descriptor, const AppendKvCacheCall& call);

}  // namespace attnjit
