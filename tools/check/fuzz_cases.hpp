// Random problems of random descriptors, for `attnjit check --fuzz`. Small: the GPU takes
// milliseconds for one. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <variant>

#include "decode_case.hpp"
#include "prefill_case.hpp"

namespace attnjit::check {

using FuzzCase = std::variant<DecodeCase, PrefillCase>;

// Consecutive cases that share a descriptor: one more costs its kernels' compilation.
constexpr std::uint64_t cases_per_descriptor = 20;

// Bounds of a case, over all of its requests.
constexpr std::int64_t most_fuzz_pairs = std::int64_t{1}
                                         << 22;  // query tokens x query heads x keys
constexpr std::int64_t most_fuzz_query_elements = std::int64_t{1} << 23;  // of q and out
constexpr std::int64_t most_fuzz_key_elements = std::int64_t{1} << 25;    // of k and v
constexpr std::int64_t most_fuzz_mask_elements = std::int64_t{1} << 19;   // drawn on the host

// A case that is served, deterministic in both arguments.
FuzzCase make_fuzz_case(std::uint64_t seed, std::uint64_t index);

}  // namespace attnjit::check
