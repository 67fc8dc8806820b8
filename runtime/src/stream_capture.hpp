// Whether a stream is being captured into a graph. Private; thread-safe.
#pragma once

struct CUstream_st;

namespace attnjit {

// Throws DriverError, CudaError.
bool is_capturing(CUstream_st* stream);

}  // namespace attnjit
