// A SparseMlaCall held against its descriptor, and as the arguments of its kernel. Pure.
#pragma once

#include "attnjit/sparse_mla.hpp"
#include "interface/sparse_mla_arguments.h"

namespace attnjit {

// Throws ArgumentError listing everything that is wrong.
void check_sparse_mla_call(const AttentionDescriptor& descriptor, const SparseMlaCall& call);

// Of a call that passed.
kernel_interface::SparseMlaArguments make_sparse_mla_arguments(
    const AttentionDescriptor& descriptor, const SparseMlaCall& call);

}  // namespace attnjit
