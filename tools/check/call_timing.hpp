// Times a call on the GPU: graph replays between events, the L2 flushed before each, and what the
// device could do at most. One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "attnjit/device_memory.hpp"

namespace attnjit::check {

struct TensorBytes {
  const char* name;
  double bytes;
};

// What a call must do at least.
struct CallWork {
  double flops = 0;                  // 2 * (d_qk + d_v) for every query row and key
  std::vector<TensorBytes> tensors;  // each needed input once and the output once

  double bytes() const;  // of all tensors
};

struct CallTiming {
  double median_microseconds = 0;
  double least_microseconds = 0;
  CallWork work;

  double teraflops() const { return work.flops / median_microseconds * 1e-6; }
  double gigabytes_per_second() const { return work.bytes() / median_microseconds * 1e-3; }
};

// Of the times of replays, in microseconds; at least one.
CallTiming summarize(std::vector<double> times, const CallWork& work);

// What a GPU can do at most, from its clocks and widths as the driver reports them.
struct DevicePeak {
  double flops_per_second = 0;  // 16-bit tensor cores, dense
  double bytes_per_second = 0;  // of device memory
};

// Throws DriverError, CudaError.
DevicePeak query_device_peak(int device);

// The least time in microseconds that `work` takes on `peak`.
double roofline_microseconds(const CallWork& work, const DevicePeak& peak);

// So many replays that are timed, after `warm_up` and a rest of the GPU.
struct TimedReplays {
  int warm_up = 0;
  std::chrono::milliseconds rest = std::chrono::milliseconds(0);
  int repetitions = 0;
};

// Replays for a figure by itself. A card above its power limit lowers its clocks after some 25 ms
// and raises them again within 400 ms: no case pays for the one before, or for making its data.
TimedReplays rested_replays(int repetitions);

// Memory that, once written, is all that the L2 holds.
DeviceBuffer make_flush_buffer(int device);

// Microseconds of each timed replay of what `run` queues on `stream`. Throws what running throws.
std::vector<double> time_replays(const DeviceStream& stream, const std::function<void()>& run,
                                 DeviceBuffer& flush, const TimedReplays& replays);

}  // namespace attnjit::check
