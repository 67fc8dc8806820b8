#include "decode_timing.hpp"

namespace attnjit::check {

CallWork count_work(const DecodeCase& decode_case) {
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
  const double rows =
      decode_case.batch() * static_cast<double>(decode_case.seqlen_q) * descriptor.num_q_heads;
  const double key_rows = keys * descriptor.num_kv_heads * size_bytes(descriptor.dtype_kv);
  const double columns = descriptor.head_dim_qk + descriptor.head_dim_v;
  CallWork work{.flops = 2 * products * descriptor.num_q_heads * columns, .tensors = {}};
  work.tensors.push_back({"q", rows * descriptor.head_dim_qk * size_bytes(descriptor.dtype_q)});
  work.tensors.push_back({"k_cache", key_rows * descriptor.head_dim_qk});
  if (descriptor.value_source != ValueSource::prefix_of_k) {
    work.tensors.push_back({"v_cache", key_rows * descriptor.head_dim_v});
  }
  work.tensors.push_back({"out", rows * descriptor.head_dim_v * size_bytes(descriptor.dtype_out)});
  return work;
}

DecodeTimer::DecodeTimer(AttentionRuntime& runtime, const DecodeCase& decode_case, int device)
    : stream_(device),
      check_kernels_(load_check_kernels(runtime.provider(), device)),
      problem_(check_kernels_, decode_case, stream_, decode_case.seed),
      flush_(make_flush_buffer(device)) {}

std::vector<double> DecodeTimer::time(const std::shared_ptr<const PreparedDecode>& kernels,
                                      const TimedReplays& replays) {
  const DecodeCase& decode_case = problem_.decode_case();
  DecodePlan plan(kernels, decode_case.batch(), decode_case.seqlen_q, problem_.max_seqlen());
  plan.update(problem_.device_seq_lens(), decode_case.batch(), stream_.handle());
  const DeviceBuffer workspace(stream_.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  const auto run = [&] {
    run_decode(plan, problem_.call(), workspace.data(), plan.workspace_bytes(), stream_.handle());
  };
  return time_replays(stream_, run, flush_, replays);
}

CallTiming time_decode(AttentionRuntime& runtime, const DecodeCase& decode_case, int device,
                       int repetitions) {
  DecodeTimer timer(runtime, decode_case, device);
  return summarize(timer.time(runtime.prepare_decode(decode_case.descriptor, device),
                              rested_replays(repetitions)),
                   count_work(decode_case));
}

}  // namespace attnjit::check
