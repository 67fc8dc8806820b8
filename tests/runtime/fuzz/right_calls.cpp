#include "right_calls.hpp"

#include <cstdlib>

namespace attnjit::test {

RightCalls::RightCalls() : cache((scratch.path() / "cache").string()) {
  // Options that name no place take these.
  setenv("HOME", scratch.path().c_str(), 1);
  setenv("ATTNJIT_CACHE_DIR", cache.c_str(), 1);
  {
    const CAbiSession filling([&](auto& options) { options.cache_directory = cache.c_str(); });
    for (const char* descriptor : descriptors) {
      require_ok(attnjit_warm(filling.runtime, descriptor, "h200", nullptr));
    }
  }
  session = std::make_unique<CAbiSession>([&](auto& options) {
    options.cache_directory = cache.c_str();
    options.forbid_jit = 1;
    options.log = [](void*, std::int32_t, const char*) {};
  });
  session->mock.most_bytes = std::size_t{1} << 20;
  decodes = {right_mla_decode(*session), right_gqa_decode(*session)};
  prefills = {right_ragged_prefill(*session), right_paged_prefill(*session),
              right_rope_prefill(*session)};
  sparse_mlas = {right_sparse_decode(*session), right_sparse_prefill(*session)};
  appends = {right_append(*session)};
  merges = {right_merge(*session)};
}

RightCalls& right_calls() {
  static auto* const only = new RightCalls;
  return *only;
}

}  // namespace attnjit::test
