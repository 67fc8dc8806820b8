// The requirements, part by part, in the order in which they are numbered. Pure; thread-safe.
#pragma once

#include <vector>

#include "requirement.hpp"

namespace attnjit::contract {

// Operations 1 to 12.
std::vector<Requirement> operation_rows();

// R1 to R21: symbols, decode and its metadata.
std::vector<Requirement> decode_rows();

// R22 to R36: the two prefills.
std::vector<Requirement> prefill_rows();

// R37 to R43: memory layout.
std::vector<Requirement> memory_rows();

// R44 to R49, the stride order and the quick checks R50 to R55.
std::vector<Requirement> error_rows();

// A1 to A20: flare_mla_prefill.
std::vector<Requirement> flare_rows();

// Readings of what is ambiguous: §4.1 to §4.7, §4.8 to §4.13, and the masks of §4.14.
std::vector<Requirement> layout_reading_rows();
std::vector<Requirement> numeric_reading_rows();
std::vector<Requirement> mask_reading_rows();

// The traps of §5: bits that may not change, and shapes at the edges.
std::vector<Requirement> bit_trap_rows();
std::vector<Requirement> shape_trap_rows();

// All of these.
std::vector<Requirement> all_requirements();

// Those whose id is of the glob `pattern`; all if it is empty.
std::vector<Requirement> requirements_of(std::string_view pattern);

}  // namespace attnjit::contract
