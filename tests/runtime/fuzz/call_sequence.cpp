#include "call_sequence.hpp"

#include <climits>
#include <iterator>

#include "call_checks.hpp"
#include "fuzzed_calls.hpp"
#include "right_calls.hpp"

namespace attnjit::test {

// The right one, one of this sequence, one that was ended, or no handle.
std::uint64_t CallSequence::pick_handle(std::uint64_t right) {
  std::vector<std::uint64_t> all = stale_;
  for (const auto* handles : {&runtimes_, &kernels_, &plans_}) {
    all.insert(all.end(), handles->begin(), handles->end());
  }
  switch (bytes_.below(8)) {
    case 0:
      return bytes_.number<std::uint64_t>();
    case 1:
      return right ^ (std::uint64_t{1} << (8 + bytes_.below(56)));
    case 2:
    case 3:
      return all.empty() ? 0 : all[bytes_.below(all.size())];
    default:
      return right;
  }
}

std::string CallSequence::pick_descriptor() {
  const auto& descriptors = right_calls().descriptors;
  return fuzzed_descriptor(bytes_, descriptors[bytes_.below(descriptors.size())]);
}

void CallSequence::change_driver() {
  MockDriver& mock = right_calls().session->mock;
  mock.is_capturing = bytes_.one_in(2);
  mock.is_capturing_implicitly = bytes_.one_in(4);
  mock.launch_result = bytes_.one_in(4) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  mock.encode_result = bytes_.one_in(4) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  mock.load_result = bytes_.one_in(4) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  mock.allocation_result = bytes_.one_in(4) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  mock.context_result = bytes_.one_in(8) ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
}

void CallSequence::create_runtime() {
  const std::string trace = (right_calls().scratch.path() / "trace").string();
  const std::string absent = (right_calls().scratch.path() / "absent").string();
  const char* layers[] = {right_calls().cache.c_str(), bytes_.one_in(4) ? nullptr : absent.c_str()};
  attnjit_runtime_options options = session_options();
  options.device = bytes_.one_in(8) ? bytes_.number<std::int32_t>() : 0;
  options.forbid_jit = bytes_.one_in(8) ? 2 : 1;
  options.templates = bytes_.pick<const char*>({nullptr, nullptr, "", absent.c_str()});
  options.cache_directory = bytes_.pick<const char*>({right_calls().cache.c_str(), nullptr, ""});
  options.cache_layers = bytes_.one_in(2) ? layers : nullptr;
  options.num_cache_layers = bytes_.below(3);
  options.cache_sharing = bytes_.one_in(8) ? bytes_.number<std::int32_t>() : 0;
  options.trusts_pointers = bytes_.one_in(4) ? 1 : 0;
  options.cache_max_bytes = bytes_.one_in(8) ? bytes_.number<std::uint64_t>() | 1U << 30 : 0;
  options.miss_trace = bytes_.pick<const char*>({nullptr, "", trace.c_str()});
  options.log = [](void*, std::int32_t, const char*) {};
  options.struct_size = fuzzed_size(bytes_, sizeof options);
  attnjit_runtime runtime = 77;
  const attnjit_status status = attnjit_runtime_create(&options, &runtime);
  check_status(status);
  check_that((status == ATTNJIT_OK) == (runtime != 0), "a handle that does not fit the status");
  if (runtime != 0) {
    runtimes_.push_back(runtime);
  }
}

void CallSequence::ask_descriptor() {
  const std::string descriptor = pick_descriptor();
  const attnjit_runtime runtime = pick_handle(right_calls().session->runtime);
  const char* const arch = bytes_.pick<const char*>({"h200", "sm_80", "", "sm_999", nullptr});
  std::string buffer(bytes_.byte(), '?');
  std::int32_t number = 0;
  std::size_t count = 0;
  switch (bytes_.below(4)) {
    case 0:
      check_status(attnjit_validate(pick_text(descriptor)));
      break;
    case 1:
      check_status(attnjit_warm(runtime, pick_text(descriptor), arch, &number));
      break;
    case 2:
      check_status(attnjit_source(runtime, pick_text(descriptor), arch,
                                  bytes_.one_in(8) ? nullptr : buffer.data(), buffer.size(),
                                  &count));
      break;
    default:
      check_status(attnjit_is_cold(runtime, pick_text(descriptor), &number));
  }
}

void CallSequence::prepare() {
  const std::string descriptor = pick_descriptor();
  attnjit_kernel kernel = 77;
  const attnjit_status status = attnjit_prepare(pick_handle(right_calls().session->runtime),
                                                pick_text(descriptor), pick_stream(), &kernel);
  check_status(status);
  check_that((status == ATTNJIT_OK) == (kernel != 0), "a handle that does not fit the status");
  if (kernel != 0) {
    kernels_.push_back(kernel);
  }
}

void CallSequence::create_plan() {
  attnjit_plan_options options = {};
  options.max_batch = bytes_.one_in(4) ? bytes_.number<std::int32_t>() : bytes_.byte();
  options.seqlen_q = bytes_.one_in(4) ? bytes_.number<std::int32_t>() : 0;
  options.max_seqlen_kv = bytes_.one_in(4) ? bytes_.number<std::int32_t>() : 0;
  options.struct_size = fuzzed_size(bytes_, sizeof options);
  attnjit_plan plan = 77;
  const attnjit_kernel kernel = kernels_.empty() ? 0 : kernels_.back();
  const attnjit_status status = attnjit_plan_create(pick_handle(kernel), &options, &plan);
  check_status(status);
  check_that((status == ATTNJIT_OK) == (plan != 0), "a handle that does not fit the status");
  if (plan != 0) {
    plans_.push_back(plan);
  }
}

void CallSequence::update_plan() {
  static const std::vector<int> seq_lens = {0, 1, 64, 5000, INT_MAX, -1, INT_MIN, 7};
  const attnjit_plan plan =
      pick_handle(plans_.empty() ? pick(right_calls().decodes).handle : plans_[0]);
  std::int64_t workspace_bytes = 0;
  check_status(attnjit_plan_workspace_bytes(plan, &workspace_bytes));
  if (bytes_.one_in(2)) {
    const auto batch = static_cast<std::int32_t>(bytes_.below(seq_lens.size() + 1));
    check_status(attnjit_plan_update_from_host(plan, seq_lens.data(), batch, pick_stream()));
  } else {
    const std::int32_t batch = bytes_.one_in(4) ? bytes_.number<std::int32_t>() : decode_batch;
    check_status(attnjit_plan_update(plan, static_cast<const int*>(fuzzed_address(bytes_)), batch,
                                     pick_stream()));
  }
}

void CallSequence::end_handle() {
  const auto end = [&](std::vector<std::uint64_t>& handles, auto* function) {
    if (handles.empty() || bytes_.one_in(8)) {
      check_status(function(bytes_.number<std::uint64_t>() | std::uint64_t{0xff} << 56));
      return;
    }
    stale_.push_back(handles.back());
    handles.pop_back();
    check_that(function(stale_.back()) == ATTNJIT_OK, "a handle that cannot be ended");
  };
  switch (bytes_.below(3)) {
    case 0:
      return end(runtimes_, attnjit_runtime_destroy);
    case 1:
      return end(kernels_, attnjit_kernel_release);
    default:
      return end(plans_, attnjit_plan_destroy);
  }
}

void CallSequence::decode() {
  const auto& right = pick(right_calls().decodes);
  const attnjit_decode_call call = fuzzed_call(bytes_, right);
  void* const workspace = bytes_.one_in(4) ? fuzzed_address(bytes_) : device_address(99);
  const std::int64_t size =
      bytes_.one_in(4) ? bytes_.number<std::int64_t>() : std::int64_t{1} << 40;
  const attnjit_plan plan = plans_.empty() || bytes_.one_in(2) ? right.handle : plans_.back();
  check_status(attnjit_decode(pick_handle(plan), pick_call(call), workspace, size, pick_stream()));
}

void CallSequence::prefill() {
  const auto& right = pick(right_calls().prefills);
  const attnjit_prefill_call call = fuzzed_call(bytes_, right);
  attnjit_prefill_split split = {};
  split.num_splits = bytes_.one_in(4) ? bytes_.number<std::int32_t>() : bytes_.byte() % 34;
  split.workspace_bytes = bytes_.one_in(4) ? bytes_.number<std::int64_t>() : 0;
  split.reserved = bytes_.one_in(32) ? 1 : 0;
  split.struct_size = fuzzed_size(bytes_, sizeof split);
  const std::int64_t size =
      bytes_.one_in(4) ? bytes_.number<std::int64_t>() : std::int64_t{1} << 40;
  check_status(attnjit_prefill(pick_handle(right.handle), pick_call(call),
                               bytes_.one_in(2) ? nullptr : &split, fuzzed_address(bytes_), size,
                               pick_stream()));
}

void CallSequence::plan_prefill() {
  const auto& right = pick(right_calls().prefills);
  const attnjit_prefill_call call = fuzzed_call(bytes_, right);
  attnjit_prefill_split split = {};
  split.struct_size = fuzzed_size(bytes_, sizeof split);
  const attnjit_status status =
      attnjit_prefill_plan(pick_handle(right.handle), pick_call(call), &split);
  check_status(status);
  if (status == ATTNJIT_OK) {
    check_that(split.num_splits >= 1 && split.num_splits <= 32 && split.workspace_bytes >= 0 &&
                   (split.num_splits > 1) == (split.workspace_bytes > 0),
               "a split that is none");
  }
}

void CallSequence::sparse_mla() {
  const auto& right = pick(right_calls().sparse_mlas);
  const attnjit_sparse_mla_call call = fuzzed_call(bytes_, right);
  check_status(attnjit_sparse_mla(pick_handle(right.handle), pick_call(call), pick_stream()));
}

void CallSequence::append() {
  const auto& right = pick(right_calls().appends);
  const attnjit_append_kv_cache_call call = fuzzed_call(bytes_, right);
  check_status(attnjit_append_kv_cache(pick_handle(right.handle), pick_call(call), pick_stream()));
}

void CallSequence::merge() {
  const auto& right = pick(right_calls().merges);
  attnjit_partial_attention partials[] = {right.call.partials[0], right.call.partials[1]};
  fuzz_tensor(bytes_, bytes_.one_in(2) ? partials[1].out : partials[0].lse);
  attnjit_merge_states_call call = fuzzed_call(bytes_, right);
  call.partials = call.partials == nullptr ? nullptr : partials;
  check_status(attnjit_merge_states(pick_handle(right.handle), pick_call(call), pick_stream()));
}

void CallSequence::end_all() {
  for (const attnjit_plan plan : plans_) {
    check_that(attnjit_plan_destroy(plan) == ATTNJIT_OK, "a plan that cannot be ended");
  }
  for (const attnjit_kernel kernel : kernels_) {
    check_that(attnjit_kernel_release(kernel) == ATTNJIT_OK, "a kernel that cannot be ended");
  }
  for (const attnjit_runtime runtime : runtimes_) {
    check_that(attnjit_runtime_destroy(runtime) == ATTNJIT_OK, "a runtime that cannot be ended");
  }
}

void CallSequence::run() {
  static constexpr Action actions[] = {
      &CallSequence::change_driver, &CallSequence::create_runtime, &CallSequence::ask_descriptor,
      &CallSequence::prepare,       &CallSequence::create_plan,    &CallSequence::update_plan,
      &CallSequence::end_handle,    &CallSequence::decode,         &CallSequence::prefill,
      &CallSequence::plan_prefill,  &CallSequence::sparse_mla,     &CallSequence::append,
      &CallSequence::merge};
  while (!bytes_.is_empty()) {
    (this->*actions[bytes_.below(std::size(actions))])();
  }
  end_all();
}

}  // namespace attnjit::test
