// How far an LSE may be from the reference's. Plain code for NVRTC and for the host, whose tests
// hold it against errors that must not pass.
#pragma once

#include "check_arguments.h"

namespace attnjit::check {

// An LSE is off by no more than the scores it is made of, weighted by the softmax, and by what the
// softmax itself rounds: the absolute part. A score is off by what its sum of products loses, which
// scales with their magnitudes and not with the LSE: that may be 0 where scores of both signs
// cancel. `magnitude` is no less than |softmax_scale| * sum(|q_i * k_i|) of any key that is seen:
// by Cauchy-Schwarz |softmax_scale| * |q| * |k|.
ATTNJIT_HOST_DEVICE inline double lse_tolerance(const CompareArguments& arguments, double reference,
                                                double magnitude) {
  const double of_result = arguments.lse_relative * (reference < 0.0 ? -reference : reference);
  const double of_scores = arguments.lse_rounding * magnitude;
  return arguments.lse_absolute + (of_result > of_scores ? of_result : of_scores);
}

}  // namespace attnjit::check
