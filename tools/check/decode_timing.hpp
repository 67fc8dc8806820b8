// Times decode on the GPU on random data: the whole call, attention and combine; the plan is made
// before. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "call_timing.hpp"
#include "check_kernels.hpp"
#include "decode_case.hpp"
#include "decode_problem.hpp"

namespace attnjit::check {

// Every query token and key counts, those outside a sliding window left out; no causal discount.
CallWork count_work(const DecodeCase& decode_case);

// A case on the GPU, to time any kernels of its descriptor on the same data.
class DecodeTimer {
 public:
  DecodeTimer(AttentionRuntime& runtime, const DecodeCase& decode_case, int device);

  DecodeTimer(const DecodeTimer&) = delete;  // the problem points into it

  // Microseconds of each timed replay.
  std::vector<double> time(const std::shared_ptr<const PreparedDecode>& kernels,
                           const TimedReplays& replays);

 private:
  DeviceStream stream_;
  CheckKernels check_kernels_;
  DecodeProblem problem_;
  DeviceBuffer flush_;
};

// Times `repetitions` replays. Throws what preparing and running throw.
CallTiming time_decode(AttentionRuntime& runtime, const DecodeCase& decode_case, int device,
                       int repetitions);

}  // namespace attnjit::check
