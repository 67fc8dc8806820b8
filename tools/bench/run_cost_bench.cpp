// What a call of run_decode costs the CPU, with its plan ready, beside the cuLaunchKernelEx that it
// cannot do without: microseconds per call and allocations; and the same call through the C
// interface, which also asks the driver about each pointer unless it is told to trust. A latent
// cache (576/512, pages of 64), one request of one token, so that the GPU is never what is waited
// for.
//   attnjit_run_cost_bench [CUDA ordinal, default 0]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <vector>

#include "allocation_count.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/attnjit.h"
#include "attnjit/descriptor_json.hpp"
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

void require_ok(attnjit_status status) {
  if (status != ATTNJIT_OK) {
    throw std::runtime_error(attnjit_last_message());
  }
}

attnjit_tensor to_c(const TensorView& view) {
  attnjit_tensor tensor;
  static_assert(sizeof tensor == sizeof view);
  std::memcpy(&tensor, static_cast<const void*>(&view), sizeof tensor);
  return tensor;
}

// A plan of the C interface, made for one request.
class InterfacePlan {
 public:
  InterfacePlan(const AttentionDescriptor& descriptor, int device, std::int32_t trusts_pointers) {
    attnjit_runtime_options options = {};
    options.struct_size = sizeof options;
    options.device = device;
    options.trusts_pointers = trusts_pointers;
    require_ok(attnjit_runtime_create(&options, &runtime_));
    require_ok(attnjit_prepare(runtime_, to_json(descriptor).c_str(), nullptr, &kernel_));
    attnjit_plan_options plan_options = {};
    plan_options.struct_size = sizeof plan_options;
    plan_options.max_batch = 1;
    require_ok(attnjit_plan_create(kernel_, &plan_options, &plan_));
  }
  ~InterfacePlan() {
    attnjit_plan_destroy(plan_);
    attnjit_kernel_release(kernel_);
    attnjit_runtime_destroy(runtime_);
  }
  InterfacePlan(const InterfacePlan&) = delete;
  InterfacePlan& operator=(const InterfacePlan&) = delete;

  attnjit_plan handle() const { return plan_; }

 private:
  attnjit_runtime runtime_ = 0;
  attnjit_kernel kernel_ = 0;
  attnjit_plan plan_ = 0;
};

attnjit_decode_call to_c(const DecodeCall& call) {
  attnjit_decode_call given = {};
  given.struct_size = sizeof given;
  given.q = to_c(call.q);
  given.k_cache = to_c(call.k_cache);
  given.block_table = to_c(call.block_table);
  given.seq_lens = to_c(call.seq_lens);
  given.out = to_c(call.out);
  given.lse = to_c(call.lse);
  given.softmax_scale = call.softmax_scale;
  return given;
}

// Prints a row for each way to call, of a decode over `num_q_heads` heads.
class HeadsMeasurement {
 public:
  HeadsMeasurement(AttentionRuntime& runtime, int device, int num_q_heads)
      : stream_(device), kernels_(check::load_check_kernels(runtime.provider(), device)) {
    case_.descriptor = check::mla_descriptor(num_q_heads, 1);
    case_.seq_lens = {1};
    bare_ = measure_bare_launch(kernels_.fill_random, stream_);
  }

  void measure_library(AttentionRuntime& runtime) {
    const check::DecodeProblem problem(kernels_, case_, stream_, 1);
    const int device = stream_.device();
    DecodePlan plan(runtime.prepare_decode(case_.descriptor, device), 1, 1);
    const DeviceBuffer workspace(device, static_cast<std::size_t>(plan.workspace_bytes()));
    const auto run = [&] {
      run_decode(plan, problem.call(), workspace.data(), plan.workspace_bytes(), stream_.handle());
    };
    plan.update(case_.seq_lens, stream_.handle());
    report("plan from the host, nothing split", 1, run);
    plan.update(problem.device_seq_lens(), 1, stream_.handle());
    report("plan from the device, with combine", 2, run);
  }

  void measure_interface(const char* what, std::int32_t trusts_pointers) {
    const check::DecodeProblem problem(kernels_, case_, stream_, 1);
    const InterfacePlan plan(case_.descriptor, stream_.device(), trusts_pointers);
    std::int64_t bytes = 0;
    require_ok(attnjit_plan_workspace_bytes(plan.handle(), &bytes));
    const DeviceBuffer workspace(stream_.device(), static_cast<std::size_t>(bytes));
    require_ok(
        attnjit_plan_update_from_host(plan.handle(), case_.seq_lens.data(), 1, stream_.handle()));
    const attnjit_decode_call call = to_c(problem.call());
    report(what, 1, [&] {
      require_ok(attnjit_decode(plan.handle(), &call, workspace.data(), bytes, stream_.handle()));
    });
  }

 private:
  void report(const char* what, int launches, const std::function<void()>& run) const {
    run();  // whatever is done once
    const long before = allocation_count();
    run();
    const long allocated = allocation_count() - before;
    const double cost = measure(stream_, run);
    std::printf("%5d  %-36s %8.2f %12.2f %12.2f %12ld\n", case_.descriptor.num_q_heads, what, cost,
                bare_ * launches, cost - bare_ * launches, allocated);
  }

  DeviceStream stream_;
  check::CheckKernels kernels_;
  check::DecodeCase case_;
  double bare_ = 0;
};

void measure_all(int device) {
  AttentionRuntime runtime;
  std::printf("%s\n%5s  %-36s %8s %12s %12s %12s\n", query_target_device(device).name.c_str(),
              "heads", "run_decode", "us", "launches us", "the rest us", "allocations");
  for (const int num_q_heads : {16, 128}) {
    HeadsMeasurement measurement(runtime, device, num_q_heads);
    measurement.measure_library(runtime);
    measurement.measure_interface("C interface, pointers asked", 0);
    measurement.measure_interface("C interface, pointers trusted", 1);
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
