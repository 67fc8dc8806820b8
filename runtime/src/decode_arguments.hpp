// DecodeCall -> PagedDecodeArguments: the one place where the arguments of a decode launch are
// checked against the descriptor. Pure; allocates only to report an error; thread-safe.
#pragma once

#include "attnjit/paged_decode.hpp"
#include "interface/paged_decode_arguments.h"

namespace attnjit {

// Throws ArgumentError listing all violations.
void check_decode_call(const AttentionDescriptor& descriptor, const DecodeCall& call, int batch,
                       int seqlen_q);

// The tensors and strides of a checked call; schedule and partial results are left null.
kernel_interface::PagedDecodeArguments make_decode_arguments(const AttentionDescriptor& descriptor,
                                                             const DecodeCall& call);

}  // namespace attnjit
