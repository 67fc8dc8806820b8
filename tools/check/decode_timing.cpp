#include "decode_timing.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

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

DecodeWork count_work(const DecodeCase& decode_case) {
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const bool has_window = descriptor.mask == MaskKind::sliding_window;
  double keys = 0;
  double products = 0;  // of a query token and a key
  for (const int length : decode_case.seq_lens) {
    keys += static_cast<double>(length - visible_keys(decode_case, length, 0).begin);
    for (int query = 0; query < decode_case.seqlen_q; ++query) {
      products += static_cast<double>(has_window ? visible_keys(decode_case, length, query).size()
                                                 : length);
    }
  }
  const double rows = static_cast<double>(decode_case.seqlen_q) * descriptor.num_q_heads;
  const double columns = descriptor.head_dim_qk + descriptor.head_dim_v;
  const double cached_columns =
      descriptor.value_source == ValueSource::prefix_of_k ? descriptor.head_dim_qk : columns;
  return {2 * products * descriptor.num_q_heads * columns,
          keys * descriptor.num_kv_heads * cached_columns * size_bytes(descriptor.dtype_kv) +
              decode_case.batch() * rows * columns * size_bytes(descriptor.dtype_q)};
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

double roofline_microseconds(const DecodeWork& work, const DevicePeak& peak) {
  return 1e6 * std::max(work.flops / peak.flops_per_second, work.bytes / peak.bytes_per_second);
}

DecodeTimer::DecodeTimer(AttentionRuntime& runtime, const DecodeCase& decode_case, int device)
    : stream_(device),
      check_kernels_(load_check_kernels(runtime.provider(), device)),
      problem_(check_kernels_, decode_case, stream_, decode_case.seed),
      flush_(device, flush_bytes) {}

std::vector<double> DecodeTimer::time(const std::shared_ptr<const PreparedDecode>& kernels,
                                      const TimedReplays& replays) {
  const DecodeCase& decode_case = problem_.decode_case();
  DecodePlan plan(kernels, decode_case.batch(), decode_case.seqlen_q, problem_.max_seqlen());
  plan.update(problem_.device_seq_lens(), decode_case.batch(), stream_.handle());
  const DeviceBuffer workspace(stream_.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  const auto run = [&] {
    run_decode(plan, problem_.call(), workspace.data(), plan.workspace_bytes(), stream_.handle());
  };
  run();
  const DeviceGraph graph(stream_, run);
  for (int i = 0; i < replays.warm_up; ++i) {
    replay(graph, stream_, flush_);
  }
  stream_.synchronize();
  std::this_thread::sleep_for(replays.rest);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(replays.repetitions));
  for (int i = 0; i < replays.repetitions; ++i) {
    times.push_back(replay(graph, stream_, flush_));
  }
  stream_.synchronize();
  return times;
}

DecodeTiming time_decode(AttentionRuntime& runtime, const DecodeCase& decode_case, int device,
                         int repetitions) {
  // A card above its power limit lowers its clocks after some 25 ms and raises them again within
  // 400 ms: no case pays for the one before, or for making its data.
  constexpr std::chrono::milliseconds rest(500);
  DecodeTimer timer(runtime, decode_case, device);
  std::vector<double> times = timer.time(runtime.prepare_decode(decode_case.descriptor, device),
                                         {.warm_up = 3, .rest = rest, .repetitions = repetitions});
  std::sort(times.begin(), times.end());
  DecodeTiming timing;
  timing.median_microseconds = times[times.size() / 2];
  timing.least_microseconds = times.front();
  timing.work = count_work(decode_case);
  return timing;
}

}  // namespace attnjit::check
