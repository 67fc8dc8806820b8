// How many row tiles and rows a PrefillCall has. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/kernel_config.hpp"
#include "attnjit/prefill.hpp"

namespace attnjit {

// Row tiles of all requests: as many as there can be, for the device knows how many there are.
// Throws ArgumentError if they are more than a grid or 32 bits hold.
std::int64_t count_row_tiles(const PrefillConfig& config, const PrefillCall& call);

// Rows of a part's results: tokens of q times query heads.
std::int64_t partial_rows(const AttentionDescriptor& descriptor, const PrefillCall& call);

}  // namespace attnjit
