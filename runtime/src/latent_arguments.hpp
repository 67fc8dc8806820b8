// PagedDecodeArguments -> the arguments of kernels/swapped_decode_sm90.cu and
// kernels/seesaw_decode_sm90.cu, which read a latent cache by tensor maps, or by pointer and
// strides where rows are gathered. Allocates nothing, takes no lock; thread-safe.
#pragma once

#include "attnjit/paged_decode.hpp"
#include "interface/seesaw_decode_arguments.h"
#include "interface/swapped_decode_arguments.h"

namespace attnjit {

// Encodes the maps of a checked call of `kernel`. Throws ArgumentError for a cache that no map can
// describe, CudaError.
kernel_interface::SwappedDecodeArguments make_swapped_arguments(
    const AttentionDescriptor& descriptor, KvCopy kv_copy, const DecodeCall& call,
    const kernel_interface::PagedDecodeArguments& arguments, const LoadedKernel& kernel);
kernel_interface::SeesawDecodeArguments make_seesaw_arguments(
    const AttentionDescriptor& descriptor, KvCopy kv_copy, const DecodeCall& call,
    const kernel_interface::PagedDecodeArguments& arguments, const LoadedKernel& kernel);

}  // namespace attnjit
