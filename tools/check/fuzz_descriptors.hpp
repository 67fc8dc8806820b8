// Random descriptors that are served. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::check {

// A legal descriptor of decode, prefill or prefill_kvcache, deterministic in both arguments.
AttentionDescriptor make_fuzz_descriptor(std::uint64_t seed, std::uint64_t number);

}  // namespace attnjit::check
