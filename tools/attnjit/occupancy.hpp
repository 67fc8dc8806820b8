// How many blocks of a kernel a multiprocessor holds at once, calculated from what the kernel uses
// and what the card has: needs no GPU. Pure; thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "attnjit/kernel_metadata.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// What one block takes.
struct BlockNeeds {
  int threads = 0;
  int registers = 0;     // per thread
  int shared_bytes = 0;  // static and dynamic
};
BlockNeeds needs_of(const KernelMetadata& metadata);

struct Occupancy {
  int blocks = 0;          // per multiprocessor
  int warps = 0;           // of these blocks
  int most_warps = 0;      // that a multiprocessor holds
  std::string_view limit;  // what keeps further blocks out: registers, shared memory, warps, blocks
};

// nullopt for a compute capability that is not known here (known: 80 to 90, 100, 103, 120, 121).
std::optional<Occupancy> calculate_occupancy(const BlockNeeds& block, const TargetDevice& device);

// The first card of `arch`; nullopt if no preset has it.
std::optional<Occupancy> calculate_occupancy(const KernelMetadata& metadata);

}  // namespace attnjit
