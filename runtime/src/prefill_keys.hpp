// The keys and values of a PrefillCall: where they lie, and the checks of that. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attnjit/prefill.hpp"
#include "interface/prefill_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {

// Of k and v. Where the rope columns have a tensor of their own, the descriptor's layout is that
// tensor's, and k and v are ragged.
KvLayout key_layout(const AttentionDescriptor& descriptor);

// Tokens of k that is not paged, of all requests or of each.
std::int64_t key_extent(const AttentionDescriptor& descriptor, const PrefillCall& call);

// Where the heads of k and v stand.
std::size_t key_head_dimension(const AttentionDescriptor& descriptor, const TensorView& keys);

// Of a tensor laid out as k and v, or as k_rope.
kernel_interface::CacheStrides key_strides(const AttentionDescriptor& descriptor,
                                           const TensorView& keys);
kernel_interface::CacheStrides rope_strides(const AttentionDescriptor& descriptor,
                                            const TensorView& rope);

void check_prefill_keys(TensorChecks& checks, const AttentionDescriptor& descriptor,
                        const PrefillCall& call, std::int64_t batch);

// Sets what says where keys, values and rope columns lie, of a call that passes the checks.
void set_prefill_keys(const AttentionDescriptor& descriptor, const PrefillCall& call,
                      kernel_interface::PrefillArguments& arguments);

}  // namespace attnjit
