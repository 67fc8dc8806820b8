#include "stream_capture.hpp"

#include "driver.hpp"

namespace attnjit {

bool is_capturing(CUstream_st* stream, int device) {
  const Driver& driver = Driver::instance();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver.api().stream_is_capturing(stream, &status);
  if (result == CUDA_ERROR_INVALID_CONTEXT && stream == nullptr) {
    const ScopedContext current(driver, driver.primary_context(device));
    result = driver.api().stream_is_capturing(stream, &status);
  }
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    return true;
  }
  driver.check(result, "cuStreamIsCapturing");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace attnjit
