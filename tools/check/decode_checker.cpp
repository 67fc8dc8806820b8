#include "decode_checker.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sink_oracle.hpp"

namespace attnjit::check {
namespace {

// What `view` holds of requests [first, first + count).
TensorView requests_of(TensorView view, int first, int count) {
  view.data =
      static_cast<unsigned char*>(view.data) + first * view.strides[0] * size_bytes(view.dtype);
  view.shape[0] = count;
  return view;
}

DecodeCall requests_of(DecodeCall call, int first, int count) {
  for (TensorView* view : {&call.q, &call.block_table, &call.seq_lens, &call.out, &call.lse}) {
    *view = requests_of(*view, first, count);
  }
  return call;
}

// The bytes of each request's outputs and LSEs, of what download_outputs gives.
std::vector<std::vector<unsigned char>> split_by_request(const std::vector<unsigned char>& bytes,
                                                         const DecodeProblem& problem) {
  const auto batch = static_cast<std::size_t>(problem.decode_case().batch());
  const TensorView& out = problem.call().out;
  const std::size_t out_bytes =
      static_cast<std::size_t>(out.strides[0]) * static_cast<std::size_t>(size_bytes(out.dtype));
  const std::size_t lse_bytes = bytes.size() / batch - out_bytes;
  std::vector<std::vector<unsigned char>> requests(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    const auto outputs = bytes.begin() + static_cast<std::ptrdiff_t>(b * out_bytes);
    const auto lses =
        bytes.begin() + static_cast<std::ptrdiff_t>(batch * out_bytes + b * lse_bytes);
    requests[b].assign(outputs, outputs + static_cast<std::ptrdiff_t>(out_bytes));
    requests[b].insert(requests[b].end(), lses, lses + static_cast<std::ptrdiff_t>(lse_bytes));
  }
  return requests;
}

// Parts of a batch: each request alone, neighbours in twos, both halves, all.
std::vector<std::pair<int, int>> runs_of_requests(int batch) {
  std::vector<std::pair<int, int>> runs = {
      {0, batch}, {0, (batch + 1) / 2}, {batch / 2, batch - batch / 2}};
  for (const int count : {1, 2}) {
    for (int first = 0; first + count <= batch; ++first) {
      runs.emplace_back(first, count);
    }
  }
  return runs;
}

// Lengths as they were some steps before the run.
std::vector<int> earlier_lengths(std::vector<int> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = i % 2 == 0 ? lengths[i] / 2 : lengths[i] + 700;
  }
  return lengths;
}

}  // namespace

DecodeChecker::DecodeChecker(AttentionRuntime& runtime, int device)
    : runtime_(runtime),
      stream_(device),
      kernels_(load_check_kernels(runtime.provider(), device)) {}

void DecodeChecker::run(DecodeProblem& problem,
                        const std::shared_ptr<const PreparedDecode>& kernels, int first,
                        int count) {
  const DecodeCase& decode_case = problem.decode_case();
  DecodePlan plan(kernels, count, decode_case.seqlen_q, problem.max_seqlen());
  const std::span<const int> seq_lens =
      std::span<const int>(decode_case.seq_lens)
          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  DeviceBuffer earlier;
  if (decode_case.plan == PlanSource::host) {
    plan.update(seq_lens, stream_.handle());
  } else if (decode_case.plan == PlanSource::stale) {
    const std::vector<int> lengths = earlier_lengths({seq_lens.begin(), seq_lens.end()});
    earlier = make_device_buffer<int>(stream_.device(), lengths, stream_.handle());
    plan.update(static_cast<const int*>(earlier.data()), count, stream_.handle());
  } else {
    plan.update(problem.device_seq_lens() + first, count, stream_.handle());
  }
  DeviceBuffer workspace(stream_.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  workspace.fill(0xff, stream_.handle());
  problem.poison_outputs(stream_);
  run_decode(plan, requests_of(problem.call(), first, count), workspace.data(),
             plan.workspace_bytes(), stream_.handle());
  stream_.synchronize();  // plan and workspace go away
}

CheckResult DecodeChecker::check(const SuiteCase& suite_case) {
  switch (suite_case.kind) {
    case CheckKind::permutation:
      return check_permutation(suite_case.decode_case);
    case CheckKind::batch:
      return check_batch_invariance(suite_case.decode_case);
    case CheckKind::sink_oracle:
      return check_sink_oracle(suite_case.decode_case);
    case CheckKind::reference:
      break;
  }
  return check(suite_case.decode_case);
}

CheckResult DecodeChecker::check(const DecodeCase& decode_case) {
  return check(decode_case, runtime_.prepare_decode(decode_case.descriptor, stream_.device()));
}

CheckResult DecodeChecker::check(const DecodeCase& decode_case,
                                 const std::shared_ptr<const PreparedDecode>& kernels) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  run(problem, kernels, 0, decode_case.batch());
  return judge(compare_with_reference(kernels_, problem, stream_, tolerance_), problem.num_values(),
               tolerance_);
}

CheckResult DecodeChecker::check_permutation(const DecodeCase& decode_case) {
  const auto kernels = runtime_.prepare_decode(decode_case.descriptor, stream_.device());
  std::vector<std::vector<unsigned char>> outputs;
  for (const std::uint64_t table_seed : {decode_case.seed, decode_case.seed + 1000}) {
    DecodeProblem problem(kernels_, decode_case, stream_, table_seed);
    run(problem, kernels, 0, decode_case.batch());
    outputs.push_back(problem.download_outputs(stream_));
  }
  CheckResult result;
  result.passed = outputs[0] == outputs[1];
  result.failure = result.passed ? "" : "outputs differ after the pages were permuted";
  return result;
}

CheckResult DecodeChecker::check_batch_invariance(const DecodeCase& decode_case) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  const auto kernels = runtime_.prepare_decode(decode_case.descriptor, stream_.device());
  const int batch = decode_case.batch();
  std::vector<std::vector<unsigned char>> expected;  // by request
  CheckResult result;
  const auto compare = [&](int first, int count, std::string_view where) {
    run(problem, kernels, first, count);
    const auto actual = split_by_request(problem.download_outputs(stream_), problem);
    if (expected.empty()) {
      expected = actual;
    }
    for (int b = first; b < first + count && result.failure.empty(); ++b) {
      const auto i = static_cast<std::size_t>(b);
      const bool is_compared = problem.decode_case().seq_lens[i] == decode_case.seq_lens[i];
      if (is_compared && actual[i] != expected[i]) {
        result.failure = fmt::format("request {} differs {} requests {} to {}", b, where, first,
                                     first + count - 1);
      }
    }
  };
  for (const auto& [first, count] : runs_of_requests(batch)) {
    compare(first, count, "in a batch of");
  }
  for (const std::size_t parity : {0, 1}) {
    problem.replace_lengths(with_shorter_mates(decode_case, parity), stream_);
    compare(0, batch, "beside mates of other lengths among");
  }
  result.passed = result.failure.empty();
  return result;
}

CheckResult DecodeChecker::check_sink_oracle(const DecodeCase& decode_case) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  run(problem, runtime_.prepare_decode(decode_case.descriptor, stream_.device()), 0,
      decode_case.batch());
  return judge(compare_with_sink_oracle(problem, problem.download_outputs(stream_), tolerance_),
               problem.num_values(), tolerance_);
}

}  // namespace attnjit::check
