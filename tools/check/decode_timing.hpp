// Times decode on the GPU: graph replays between events, the L2 flushed before each, random data,
// the whole call (attention and combine; the plan is made before). One thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "decode_case.hpp"
#include "decode_problem.hpp"

namespace attnjit::check {

struct DecodeWork {
  double flops = 0;  // 2 * h * (d_qk + d_v) for every query token and key, those outside a sliding
                     // window left out; no causal discount
  double bytes = 0;  // each needed input once and the output once
};

DecodeWork count_work(const DecodeCase& decode_case);

struct DecodeTiming {
  double median_microseconds = 0;
  double least_microseconds = 0;
  DecodeWork work;

  double teraflops() const { return work.flops / median_microseconds * 1e-6; }
  double gigabytes_per_second() const { return work.bytes / median_microseconds * 1e-3; }
};

// What a GPU can do at most, from its clocks and widths as the driver reports them.
struct DevicePeak {
  double flops_per_second = 0;  // 16-bit tensor cores, dense
  double bytes_per_second = 0;  // of device memory
};

// Throws DriverError, CudaError.
DevicePeak query_device_peak(int device);

// The least time in microseconds that `work` takes on `peak`.
double roofline_microseconds(const DecodeWork& work, const DevicePeak& peak);

// So many replays that are timed, after `warm_up` and a rest of the GPU.
struct TimedReplays {
  int warm_up = 0;
  std::chrono::milliseconds rest = std::chrono::milliseconds(0);
  int repetitions = 0;
};

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
DecodeTiming time_decode(AttentionRuntime& runtime, const DecodeCase& decode_case, int device,
                         int repetitions);

}  // namespace attnjit::check
