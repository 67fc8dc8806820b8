// Whether a stream is being captured into a graph. Private; thread-safe.
#pragma once

struct CUstream_st;

namespace attnjit {

// Of the legacy stream, also whether a stream is that waits for it; where the thread has no
// context, that of the primary context of `device`. Throws DriverError, CudaError.
bool is_capturing(CUstream_st* stream, int device);

}  // namespace attnjit
