#include "attnjit/attention_runtime.hpp"

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/target_device_query.hpp"
#include "prepared_table.hpp"
#include "stream_capture.hpp"

namespace attnjit {
namespace {

void refuse_capture(const AttentionDescriptor& descriptor, int device, CUstream_st* stream,
                    std::string_view prepare) {
  if (is_capturing(stream, device)) {
    throw ColdKernelError(fmt::format(
        "the kernels of {} are not ready on device {} and the stream is being captured into a "
        "graph, where nothing can be compiled or loaded; fix: call {} before the capture",
        to_json(descriptor), device, prepare));
  }
}

}  // namespace

struct AttentionRuntime::State {
  explicit State(const KernelProviderOptions& options) : provider(options) {}

  KernelProvider provider;
  PreparedTable<PreparedDecode> decodes;
  PreparedTable<PreparedMerge> merges;
  PreparedTable<PreparedAppend> appends;
  PreparedTable<PreparedPrefill> prefills;
  PreparedTable<PreparedSparseMla> sparse_mlas;
  std::mutex mutex;                                            // of `cubins`
  std::map<std::string, std::shared_ptr<LoadedCubin>> cubins;  // by key digest

  std::shared_ptr<LoadedCubin> load(const KernelConfig& config, const TargetDevice& target) {
    const ProvidedKernel provided = provider.provide(config, target);
    const std::lock_guard lock(mutex);
    std::shared_ptr<LoadedCubin>& cubin = cubins[provided.key.digest];
    if (cubin == nullptr) {
      cubin = std::make_shared<LoadedCubin>(
          provided.cubin, KernelShape{provided.kernel.entry, provided.kernel.num_threads,
                                      provided.kernel.shared_memory_bytes});
    }
    return cubin;
  }

  // Of an operation that has one kernel.
  template <typename Config>
  std::shared_ptr<const PreparedKernel<Config>> prepare(
      PreparedTable<PreparedKernel<Config>>& ready, const AttentionDescriptor& descriptor,
      int device) {
    if (auto found = ready.find(descriptor, device)) {
      return found;
    }
    const TargetDevice target = query_target_device(device);
    const KernelConfig config = select_configs(descriptor, target).front();
    auto kernel = std::make_shared<PreparedKernel<Config>>();
    kernel->descriptor = descriptor;
    kernel->device = device;
    kernel->config = std::get<Config>(config);
    kernel->cubin = load(config, target);
    kernel->kernel = kernel->cubin->on_device(device);
    return ready.add(descriptor, device, std::move(kernel));
  }
};

AttentionRuntime::AttentionRuntime(const KernelProviderOptions& options)
    : state_(std::make_unique<State>(options)) {}

AttentionRuntime::~AttentionRuntime() = default;

KernelProvider& AttentionRuntime::provider() {
  return state_->provider;
}

bool AttentionRuntime::is_ready(const AttentionDescriptor& descriptor, int device) const {
  switch (descriptor.operation) {
    case Operation::decode:
      return state_->decodes.find(descriptor, device) != nullptr;
    case Operation::prefill:
    case Operation::prefill_kvcache:
    case Operation::mla_prefill_rope:
      return state_->prefills.find(descriptor, device) != nullptr;
    case Operation::sparse_mla_decode:
    case Operation::sparse_mla_prefill:
      return state_->sparse_mlas.find(descriptor, device) != nullptr;
    case Operation::append_kv_cache:
      return state_->appends.find(descriptor, device) != nullptr;
    case Operation::merge_states:
      break;
  }
  return state_->merges.find(descriptor, device) != nullptr;
}

std::shared_ptr<const PreparedDecode> AttentionRuntime::find_decode(
    const AttentionDescriptor& descriptor, int device) const {
  return state_->decodes.find(descriptor, device);
}

std::shared_ptr<const PreparedDecode> AttentionRuntime::prepare_decode(
    const AttentionDescriptor& descriptor, std::span<const KernelConfig> configs, int device) {
  auto prepared = std::make_shared<PreparedDecode>();
  prepared->descriptor = descriptor;
  prepared->device = device;
  prepared->target = query_target_device(device);
  for (const KernelConfig& config : configs) {
    prepared->cubins.push_back(state_->load(config, prepared->target));
    const LoadedKernel kernel = prepared->cubins.back()->on_device(device);
    if (role_of(config) == KernelRole::attention) {
      prepared->config = config;
      prepared->tile = decode_tile(config);
      prepared->attention = kernel;
    } else if (const auto* combine = std::get_if<CombineConfig>(&config)) {
      prepared->combine_config = *combine;
      prepared->combine = kernel;
    } else {
      prepared->schedule_config = std::get<ScheduleConfig>(config);
      prepared->schedule = kernel;
    }
  }
  return prepared;
}

std::shared_ptr<const PreparedDecode> AttentionRuntime::prepare_decode(
    const AttentionDescriptor& descriptor, int device) {
  if (auto ready = find_decode(descriptor, device)) {
    return ready;
  }
  require_operation(descriptor, Operation::decode);
  const TargetDevice target = query_target_device(device);
  auto prepared = prepare_decode(descriptor, select_configs(descriptor, target), device);
  return state_->decodes.add(descriptor, device, std::move(prepared));
}

std::shared_ptr<const PreparedDecode> AttentionRuntime::prepare_decode(
    const AttentionDescriptor& descriptor, int device, CUstream_st* stream) {
  if (auto ready = find_decode(descriptor, device)) {
    return ready;
  }
  refuse_capture(descriptor, device, stream, "prepare_decode");
  return prepare_decode(descriptor, device);
}

std::shared_ptr<const PreparedMerge> AttentionRuntime::prepare_merge(
    const AttentionDescriptor& descriptor, int device) {
  require_operation(descriptor, Operation::merge_states);
  return state_->prepare(state_->merges, descriptor, device);
}

std::shared_ptr<const PreparedMerge> AttentionRuntime::prepare_merge(
    const AttentionDescriptor& descriptor, int device, CUstream_st* stream) {
  if (auto ready = state_->merges.find(descriptor, device)) {
    return ready;
  }
  refuse_capture(descriptor, device, stream, "prepare_merge");
  return prepare_merge(descriptor, device);
}

std::shared_ptr<const PreparedPrefill> AttentionRuntime::prepare_prefill(
    const AttentionDescriptor& descriptor, int device) {
  if (descriptor.operation != Operation::prefill &&
      descriptor.operation != Operation::mla_prefill_rope) {
    require_operation(descriptor, Operation::prefill_kvcache);
  }
  if (auto ready = state_->prefills.find(descriptor, device)) {
    return ready;
  }
  auto prepared = std::make_shared<PreparedPrefill>();
  prepared->descriptor = descriptor;
  prepared->device = device;
  prepared->target = query_target_device(device);
  for (const KernelConfig& config : select_configs(descriptor, prepared->target)) {
    prepared->cubins.push_back(state_->load(config, prepared->target));
    const LoadedKernel kernel = prepared->cubins.back()->on_device(device);
    if (const auto* combine = std::get_if<CombinePrefillConfig>(&config)) {
      prepared->combine_config = *combine;
      prepared->combine = kernel;
    } else {
      prepared->config = std::get<PrefillConfig>(config);
      prepared->kernel = kernel;
    }
  }
  return state_->prefills.add(descriptor, device, std::move(prepared));
}

std::shared_ptr<const PreparedPrefill> AttentionRuntime::prepare_prefill(
    const AttentionDescriptor& descriptor, int device, CUstream_st* stream) {
  if (auto ready = state_->prefills.find(descriptor, device)) {
    return ready;
  }
  refuse_capture(descriptor, device, stream, "prepare_prefill");
  return prepare_prefill(descriptor, device);
}

std::shared_ptr<const PreparedAppend> AttentionRuntime::prepare_append(
    const AttentionDescriptor& descriptor, int device) {
  require_operation(descriptor, Operation::append_kv_cache);
  return state_->prepare(state_->appends, descriptor, device);
}

std::shared_ptr<const PreparedAppend> AttentionRuntime::prepare_append(
    const AttentionDescriptor& descriptor, int device, CUstream_st* stream) {
  if (auto ready = state_->appends.find(descriptor, device)) {
    return ready;
  }
  refuse_capture(descriptor, device, stream, "prepare_append");
  return prepare_append(descriptor, device);
}

std::shared_ptr<const PreparedSparseMla> AttentionRuntime::prepare_sparse_mla(
    const AttentionDescriptor& descriptor, int device) {
  if (descriptor.operation != Operation::sparse_mla_prefill) {
    require_operation(descriptor, Operation::sparse_mla_decode);
  }
  return state_->prepare(state_->sparse_mlas, descriptor, device);
}

std::shared_ptr<const PreparedSparseMla> AttentionRuntime::prepare_sparse_mla(
    const AttentionDescriptor& descriptor, int device, CUstream_st* stream) {
  if (auto ready = state_->sparse_mlas.find(descriptor, device)) {
    return ready;
  }
  refuse_capture(descriptor, device, stream, "prepare_sparse_mla");
  return prepare_sparse_mla(descriptor, device);
}

}  // namespace attnjit
