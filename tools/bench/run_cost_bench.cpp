// What a call of run_decode costs the CPU, with its plan ready, beside the cuLaunchKernelEx that it
// cannot do without: microseconds per call and allocations. A latent cache (576/512, pages of 64),
// one request of one token, so that the GPU is never what is waited for.
//   attnjit_run_cost_bench [CUDA ordinal, default 0]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <vector>

#include "allocation_count.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "attnjit/paged_decode.hpp"
#include "attnjit/target_device_query.hpp"
#include "check_kernels.hpp"
#include "decode_problem.hpp"
#include "decode_suite.hpp"
#include "driver.hpp"

namespace attnjit {
namespace {

constexpr int rounds = 400;
constexpr int calls_per_round = 20;  // fewer than a stream queues before a call waits

// Median microseconds of one call, over rounds that begin with an idle stream.
double measure(const DeviceStream& stream, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> microseconds;
  for (int round = 0; round < rounds; ++round) {
    stream.synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < calls_per_round; ++i) {
      call();
    }
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
    microseconds.push_back(elapsed.count() / calls_per_round);
  }
  std::sort(microseconds.begin(), microseconds.end());
  return microseconds[microseconds.size() / 2];
}

// A launch with everything prepared, of a kernel that has nothing to do.
double measure_bare_launch(const LoadedKernel& kernel, const DeviceStream& stream) {
  check::FillArguments arguments = {};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kernel.num_threads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream.handle();
  auto* const function = reinterpret_cast<CUfunction>(kernel.kernel);
  std::array<void*, 1> parameters = {&arguments};
  const Driver& driver = Driver::instance();
  return measure(stream, [&] {
    driver.check(driver.api().launch_kernel_ex(&config, function, parameters.data(), nullptr),
                 "cuLaunchKernelEx");
  });
}

void measure_heads(AttentionRuntime& runtime, int device, int num_q_heads) {
  const DeviceStream stream(device);
  const check::CheckKernels check_kernels = check::load_check_kernels(runtime.provider(), device);
  check::DecodeCase decode_case;
  decode_case.descriptor = check::mla_descriptor(num_q_heads, 1);
  decode_case.seq_lens = {1};
  const check::DecodeProblem problem(check_kernels, decode_case, stream, 1);
  DecodePlan plan(runtime.prepare_decode(decode_case.descriptor, device), 1, 1);
  const DeviceBuffer workspace(device, static_cast<std::size_t>(plan.workspace_bytes()));
  const auto run = [&] {
    run_decode(plan, problem.call(), workspace.data(), plan.workspace_bytes(), stream.handle());
  };
  const double bare = measure_bare_launch(check_kernels.fill_random, stream);
  const auto report = [&](const char* what, int launches) {
    run();  // whatever is done once
    const long before = allocation_count();
    run();
    const long allocated = allocation_count() - before;
    const double cost = measure(stream, run);
    std::printf("%5d  %-36s %8.2f %12.2f %12.2f %12ld\n", num_q_heads, what, cost, bare * launches,
                cost - bare * launches, allocated);
  };
  plan.update(decode_case.seq_lens, stream.handle());
  report("plan from the host, nothing split", 1);
  plan.update(problem.device_seq_lens(), 1, stream.handle());
  report("plan from the device, with combine", 2);
}

void measure_all(int device) {
  AttentionRuntime runtime;
  std::printf("%s\n%5s  %-36s %8s %12s %12s %12s\n", query_target_device(device).name.c_str(),
              "heads", "run_decode", "us", "launches us", "the rest us", "allocations");
  for (const int num_q_heads : {16, 128}) {
    measure_heads(runtime, device, num_q_heads);
  }
}

}  // namespace
}  // namespace attnjit

int main(int argument_count, char** arguments) {
  try {
    attnjit::measure_all(argument_count > 1 ? std::atoi(arguments[1]) : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
