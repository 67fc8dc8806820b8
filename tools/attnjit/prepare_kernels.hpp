// Descriptors -> kernels that are ready, all cores at once, before checks run. Thread-safe.
#pragma once

#include <vector>

#include "attnjit/attention_runtime.hpp"

namespace attnjit {

// Compiles or finds what the descriptors need; one that is given twice counts once. An error
// surfaces again when the kernel is asked for.
void prepare_kernels(AttentionRuntime& runtime, int device,
                     const std::vector<AttentionDescriptor>& descriptors);

}  // namespace attnjit
