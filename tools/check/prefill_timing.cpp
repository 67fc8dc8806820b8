#include "prefill_timing.hpp"

#include <cstddef>

#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "prefill_problem.hpp"

namespace attnjit::check {

CallWork count_work(const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  double pairs = 0;
  double keys = 0;
  double queries = 0;
  for (int request = 0; request < prefill_case.batch(); ++request) {
    for (int query = 0; query < prefill_case.q_len(request); ++query) {
      pairs += static_cast<double>(reachable_keys(prefill_case, request, query, query).size());
    }
    keys += static_cast<double>(reachable_keys(prefill_case, request).size());
    queries += prefill_case.q_len(request);
  }
  const double rows = queries * descriptor.num_q_heads;
  const double key_rows = keys * descriptor.num_kv_heads * size_bytes(descriptor.dtype_kv);
  const double columns = descriptor.head_dim_qk + descriptor.head_dim_v;
  CallWork work{.flops = 2 * pairs * descriptor.num_q_heads * columns, .tensors = {}};
  work.tensors.push_back({"q", rows * descriptor.head_dim_qk * size_bytes(descriptor.dtype_q)});
  work.tensors.push_back({"k", key_rows * descriptor.head_dim_qk});
  if (descriptor.value_source != ValueSource::prefix_of_k) {
    work.tensors.push_back({"v", key_rows * descriptor.head_dim_v});
  }
  work.tensors.push_back({"out", rows * descriptor.head_dim_v * size_bytes(descriptor.dtype_out)});
  return work;
}

CallTiming time_prefill(AttentionRuntime& runtime, const PrefillCase& prefill_case, int device,
                        int repetitions) {
  const DeviceStream stream(device);
  const CheckKernels kernels = load_check_kernels(runtime.provider(), device);
  PrefillProblem problem(kernels, prefill_case, stream, prefill_case.seed);
  const auto prepared = runtime.prepare_prefill(prefill_case.descriptor, device);
  DeviceBuffer flush = make_flush_buffer(device);
  const PrefillPlan plan = plan_prefill(*prepared, problem.call());
  const DeviceBuffer workspace(device, static_cast<std::size_t>(plan.workspace_bytes));
  const auto run = [&] {
    run_prefill(*prepared, problem.call(), plan, workspace.data(), plan.workspace_bytes,
                stream.handle());
  };
  return summarize(time_replays(stream, run, flush, rested_replays(repetitions)),
                   count_work(prefill_case));
}

}  // namespace attnjit::check
