#include "stream_capture.hpp"

#include "driver.hpp"

namespace attnjit {

bool is_capturing(CUstream_st* stream) {
  const Driver& driver = Driver::instance();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  driver.check(driver.api().stream_is_capturing(stream, &status), "cuStreamIsCapturing");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace attnjit
