// LoadedKernel -> launch(arguments, stream): the last arrow of the straight line. The hot path: no
// allocation, no lock, no environment lookup. Thread-safe.
#pragma once

#include "attnjit/loaded_kernel.hpp"

struct CUstream_st;

namespace attnjit {

struct LaunchGrid {  // blocks
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  unsigned cluster_x = 1;  // blocks of a cluster, next to each other in x; divides x
};

enum class LaunchOrder {
  after_previous,        // starts when the kernel before it in the stream has ended
  overlapping_previous,  // may start earlier; only for kernels that wait by griddepcontrol.wait
};

// Queues `kernel` on `stream`. `arguments` points to the one struct that the kernel takes by value;
// it is copied before this returns. `stream` belongs to the kernel's device; null is that device's
// default stream. Throws CudaError naming kernel and launch shape; errors of kernels queued before
// may surface here too.
void launch(const LoadedKernel& kernel, LaunchGrid grid, CUstream_st* stream, const void* arguments,
            LaunchOrder order = LaunchOrder::after_previous);

}  // namespace attnjit
