// What can go wrong with the CUDA driver: it cannot be used at all, or one call failed. Everything
// that needs no GPU (render, compile, warm, inspect) never meets these. Plain types.
#pragma once

#include <stdexcept>
#include <string>

namespace attnjit {

enum class DriverProblem {
  absent,     // no libcuda.so.1: no driver is installed
  stub,       // the toolkit's link-time stand-in was found instead of a driver
  too_old,    // an entry point of CUDA 12.0 is missing
  no_device,  // a driver, but no GPU
  failed,     // a driver that does not start, or that ATTNJIT_LIBCUDA names and that is none
};

// The driver cannot be used.
class DriverError : public std::runtime_error {
 public:
  DriverError(DriverProblem problem, const std::string& message)
      : std::runtime_error(message), problem_(problem) {}

  DriverProblem problem() const { return problem_; }

 private:
  DriverProblem problem_;
};

// A driver call failed; the message names the call, the code and its meaning.
class CudaError : public std::runtime_error {
 public:
  CudaError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  int code() const { return code_; }  // a CUresult

 private:
  int code_;
};

}  // namespace attnjit
