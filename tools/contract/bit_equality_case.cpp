#include "bit_equality_case.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "contract_gpu.hpp"
#include "decode_problem.hpp"
#include "host_tensor.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {
namespace {

constexpr int no_page = 2147480000;  // what block tables of problems hold past a request's pages

// What a change is made to, of either kind of call, with dense queries.
struct Inputs {
  TensorView q;  // [batch, seqlen_q, num_q_heads, head_dim_qk]
  TensorView k;
  TensorView v;            // as k, or not given
  TensorView block_table;  // of a paged cache
};

bool is_query_kept(const RowIndex& index) {
  return (index[1] + index[2]) % 3 == 0;
}

// By which dimension of k and v heads are counted.
std::size_t head_dimension(const AttentionDescriptor& descriptor, const TensorView& keys) {
  switch (descriptor.kv_layout_tag) {
    case KvLayoutTag::hnd:
      return static_cast<std::size_t>(keys.rank) - 3;
    case KvLayoutTag::bhsd:
    case KvLayoutTag::thd:
      return 1;
    default:
      return static_cast<std::size_t>(keys.rank) - 2;
  }
}

// A copy in which every poisoned element has other bits.
HostTensor with_other_poison(HostTensor tensor, std::uint16_t bits) {
  std::replace(tensor.elements.begin(), tensor.elements.end(), poison_bits, bits);
  return tensor;
}

// A copy in which the rows that are not kept are poison.
HostTensor with_rows_poisoned(HostTensor tensor,
                              const std::function<bool(const RowIndex&)>& is_kept) {
  for_each_row(tensor.view, [&](const RowIndex& index) {
    if (!is_kept(index)) {
      std::fill_n(tensor.row(index), tensor.columns(), poison_bits);
    }
  });
  return tensor;
}

std::uint16_t infinity_of(DataType dtype) {
  return dtype == DataType::bf16 ? 0x7f80 : 0x7c00;
}

std::uint16_t large_number(DataType dtype) {
  return dtype == DataType::bf16 ? 0x7f00 : 0x7bff;
}

// Makes one change to the inputs of a call.
class Changer {
 public:
  Changer(const AttentionDescriptor& descriptor, const DeviceStream& stream, CallMemory& memory)
      : descriptor_(descriptor), stream_(stream), memory_(memory) {}

  Inputs apply(Inputs inputs, Change change) {
    switch (change) {
      case Change::infinite_unused_slots:
        replace_poison(inputs, infinity_of(descriptor_.dtype_kv));
        break;
      case Change::finite_unused_slots:
        replace_poison(inputs, large_number(descriptor_.dtype_kv));
        break;
      case Change::other_requests:
        keep_keys(inputs, request_filter(inputs));
        break;
      case Change::other_heads: {
        const std::size_t dimension = head_dimension(descriptor_, inputs.k);
        keep_keys(inputs, [dimension](const RowIndex& index) { return index.at(dimension) == 0; });
        break;
      }
      case Change::other_rows:
        inputs.q = memory_.upload(with_rows_poisoned(download(inputs.q, stream_), is_query_kept));
        break;
      case Change::table_padding:
        inputs.block_table = pad_with_page(inputs.block_table);
        break;
    }
    return inputs;
  }

 private:
  void replace_poison(Inputs& inputs, std::uint16_t bits) {
    for (TensorView* view : {&inputs.q, &inputs.k, &inputs.v}) {
      if (view->data != nullptr) {
        *view = memory_.upload(with_other_poison(download(*view, stream_), bits));
      }
    }
  }

  void keep_keys(Inputs& inputs, const std::function<bool(const RowIndex&)>& is_kept) {
    for (TensorView* view : {&inputs.k, &inputs.v}) {
      if (view->data != nullptr) {
        *view = memory_.upload(with_rows_poisoned(download(*view, stream_), is_kept));
      }
    }
  }

  // Rows of a pool's pages that request 0 has; else those of batch index 0.
  std::function<bool(const RowIndex&)> request_filter(const Inputs& inputs) {
    const bool is_pool = descriptor_.kv_layout == KvLayout::paged && inputs.k.rank == 4;
    if (!is_pool) {
      return [](const RowIndex& index) { return index[0] == 0; };
    }
    const std::vector<int> ids = download_ids(inputs.block_table, stream_);
    const std::set<std::int64_t> pages(
        ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(inputs.block_table.shape[1]));
    return [pages](const RowIndex& index) { return pages.count(index[0]) > 0; };
  }

  TensorView pad_with_page(const TensorView& block_table) {
    std::vector<int> ids = download_ids(block_table, stream_);
    std::replace(ids.begin(), ids.end(), no_page, 0);
    return memory_.upload(ids, {block_table.shape[0], block_table.shape[1]});
  }

  const AttentionDescriptor& descriptor_;
  const DeviceStream& stream_;
  CallMemory& memory_;
};

// The bytes of every row of out and lse that the change may not touch.
std::vector<unsigned char> kept_results(const AttentionDescriptor& descriptor, Change change,
                                        const TensorView& out, const TensorView& lse,
                                        const DeviceStream& stream) {
  const std::vector<unsigned char> outputs = download_bytes(out, stream);
  const std::vector<unsigned char> lses = download_bytes(lse, stream);
  std::vector<unsigned char> kept;
  const auto append = [&kept](const std::vector<unsigned char>& from, std::int64_t first,
                              std::int64_t count) {
    kept.insert(kept.end(), from.begin() + first, from.begin() + first + count);
  };
  for_each_row(out, [&](const RowIndex& index) {
    const bool is_kept = (change != Change::other_requests || index[0] == 0) &&
                         (change != Change::other_heads || index[2] < descriptor.q_per_kv()) &&
                         (change != Change::other_rows || is_query_kept(index));
    if (!is_kept) {
      return;
    }
    const int element = size_bytes(out.dtype);
    append(outputs,
           (index[0] * out.strides[0] + index[1] * out.strides[1] + index[2] * out.strides[2]) *
               element,
           out.shape[3] * element);
    append(
        lses,
        (index[0] * lse.strides[0] + index[2] * lse.strides[1] + index[1]) * size_bytes(lse.dtype),
        size_bytes(lse.dtype));
  });
  return kept;
}

check::CheckResult verdict(Change change, const std::vector<unsigned char>& before,
                           const std::vector<unsigned char>& after) {
  if (before.empty()) {
    return result_of("nothing was compared");
  }
  return result_of(
      before == after ? "" : "results differ after a change of " + std::string(to_string(change)));
}

void run_decode_call(ContractGpu& gpu, const check::DecodeProblem& problem,
                     const DecodeCall& call) {
  const check::DecodeCase& decode_case = problem.decode_case();
  DecodePlan plan(gpu.runtime.prepare_decode(decode_case.descriptor, gpu.device()),
                  decode_case.batch(), decode_case.seqlen_q, problem.max_seqlen());
  plan.update(decode_case.seq_lens, gpu.stream.handle());
  const DeviceBuffer workspace(gpu.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  run_decode(plan, call, workspace.data(), plan.workspace_bytes(), gpu.stream.handle());
  gpu.stream.synchronize();  // plan and workspace go away
}

check::CheckResult run_twice(ContractGpu& gpu, const check::DecodeCase& decode_case,
                             Change change) {
  check::DecodeProblem problem(gpu.kernels, decode_case, gpu.stream, decode_case.seed);
  CallMemory memory(gpu.stream);
  DecodeCall call = problem.call();
  const auto run = [&] {
    problem.poison_outputs(gpu.stream);
    run_decode_call(gpu, problem, call);
    return kept_results(decode_case.descriptor, change, call.out, call.lse, gpu.stream);
  };
  const std::vector<unsigned char> before = run();
  const Inputs changed = Changer(decode_case.descriptor, gpu.stream, memory)
                             .apply({call.q, call.k_cache, call.v_cache, call.block_table}, change);
  call.q = changed.q;
  call.k_cache = changed.k;
  call.v_cache = changed.v;
  call.block_table = changed.block_table;
  return verdict(change, before, run());
}

check::CheckResult run_twice(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                             Change change) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  const auto kernel = gpu.runtime.prepare_prefill(prefill_case.descriptor, gpu.device());
  CallMemory memory(gpu.stream);
  PrefillCall call = problem.call();
  const auto run = [&] {
    problem.poison_outputs(gpu.stream);
    run_prefill(*kernel, call, gpu.stream.handle());
    return kept_results(prefill_case.descriptor, change, call.out, call.lse, gpu.stream);
  };
  const std::vector<unsigned char> before = run();
  const Inputs changed = Changer(prefill_case.descriptor, gpu.stream, memory)
                             .apply({call.q, call.k, call.v, call.block_table}, change);
  call.q = changed.q;
  call.k = changed.k;
  call.v = changed.v;
  call.block_table = changed.block_table;
  return verdict(change, before, run());
}

template <typename Case>
ContractCase make_case(const Case& problem, Change change) {
  return {
      .name = std::string(to_string(change)) + ", " + describe(problem),
      .proof = Proof::equal_bits,
      .kernels = {problem.descriptor},
      .on_gpu = [problem, change](ContractGpu& gpu) { return run_twice(gpu, problem, change); }};
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::infinite_unused_slots:
      return "infinite unused slots";
    case Change::finite_unused_slots:
      return "finite unused slots";
    case Change::other_requests:
      return "other requests";
    case Change::other_heads:
      return "other heads";
    case Change::other_rows:
      return "other rows";
    case Change::table_padding:
      return "table padding";
  }
  return "";
}

ContractCase equal_bits_case(const check::DecodeCase& decode_case, Change change) {
  return make_case(decode_case, change);
}

ContractCase equal_bits_case(const check::PrefillCase& prefill_case, Change change) {
  return make_case(prefill_case, change);
}

}  // namespace attnjit::contract
