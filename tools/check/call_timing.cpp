#include "call_timing.hpp"

#include <algorithm>
#include <thread>

#include "attnjit/target_device_query.hpp"
#include "driver.hpp"

namespace attnjit::check {
namespace {

constexpr std::size_t flush_bytes = std::size_t{256} << 20;  // several times any L2

// Dense 16-bit tensor FLOPs per clock and multiprocessor. Source: the vendor's architecture white
// papers, peak rate / (multiprocessors * boost clock).
double tensor_flops_per_clock(int compute_capability) {
  switch (compute_capability) {
    case 80:
      return 2048;
    case 90:
      return 4096;
    case 100:
    case 103:
      return 8192;
    default:
      return 1024;
  }
}

double replay(const DeviceGraph& graph, const DeviceStream& stream, DeviceBuffer& flush) {
  flush.fill(0, stream.handle());
  DeviceEvent start(stream.device());
  DeviceEvent end(stream.device());
  start.record(stream);
  graph.launch(stream);
  end.record(stream);
  return end.microseconds_since(start);
}

}  // namespace

double CallWork::bytes() const {
  double sum = 0;
  for (const TensorBytes& tensor : tensors) {
    sum += tensor.bytes;
  }
  return sum;
}

CallTiming summarize(std::vector<double> times, const CallWork& work) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), work};
}

DevicePeak query_device_peak(int device) {
  const Driver& driver = Driver::instance();
  const double clock = 1e3 * driver.attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  const double memory_clock = 1e3 * driver.attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bus_bytes =
      driver.attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  const TargetDevice target = query_target_device(device);
  return {clock * target.num_sms * tensor_flops_per_clock(target.compute_capability),
          2 * memory_clock * bus_bytes};  // two transfers per clock
}

double roofline_microseconds(const CallWork& work, const DevicePeak& peak) {
  return 1e6 * std::max(work.flops / peak.flops_per_second, work.bytes() / peak.bytes_per_second);
}

TimedReplays rested_replays(int repetitions) {
  constexpr std::chrono::milliseconds rest(500);
  return {.warm_up = 3, .rest = rest, .repetitions = repetitions};
}

DeviceBuffer make_flush_buffer(int device) {
  return {device, flush_bytes};
}

std::vector<double> time_replays(const DeviceStream& stream, const std::function<void()>& run,
                                 DeviceBuffer& flush, const TimedReplays& replays) {
  run();
  const DeviceGraph graph(stream, run);
  for (int i = 0; i < replays.warm_up; ++i) {
    replay(graph, stream, flush);
  }
  stream.synchronize();
  std::this_thread::sleep_for(replays.rest);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(replays.repetitions));
  for (int i = 0; i < replays.repetitions; ++i) {
    times.push_back(replay(graph, stream, flush));
  }
  stream.synchronize();
  return times;
}

}  // namespace attnjit::check
