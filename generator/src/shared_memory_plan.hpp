// Bytes of dynamic shared memory that a tile needs; the same sum as the kernel's SharedStorage,
// which a static_assert in the template compares. Pure; thread-safe.
#pragma once

#include "attnjit/kernel_config.hpp"

namespace attnjit {

// Of kernels/paged_decode_sm80.cu; reads all fields but shared_memory_bytes.
int shared_memory_bytes(const PagedDecodeConfig& config);

// Of kernels/swapped_decode_sm90.cu; reads all fields but shared_memory_bytes.
int shared_memory_bytes(const SwappedDecodeConfig& config);

// Of kernels/seesaw_decode_sm90.cu; reads all fields but shared_memory_bytes.
int shared_memory_bytes(const SeesawDecodeConfig& config);

// Of kernels/prefill_sm80.cu; reads all fields but shared_memory_bytes.
int shared_memory_bytes(const PrefillConfig& config);

// Of kernels/sparse_mla_sm80.cu; reads all fields but shared_memory_bytes.
int shared_memory_bytes(const SparseMlaConfig& config);

}  // namespace attnjit
