#include "kernel_template.hpp"

namespace attnjit {
namespace {

KernelTemplate template_for(const PagedDecodeConfig& config) {
  return {"paged_decode_sm80", KernelRole::attention, config.num_warps * 32,
          config.shared_memory_bytes};
}

KernelTemplate template_for(const SwappedDecodeConfig& config) {
  return {"swapped_decode_sm90", KernelRole::attention, 3 * 128, config.shared_memory_bytes};
}

KernelTemplate template_for(const SeesawDecodeConfig& config) {
  return {"seesaw_decode_sm90", KernelRole::attention, 3 * 128, config.shared_memory_bytes};
}

KernelTemplate template_for(const CombineConfig& config) {
  return {"combine_splits", KernelRole::combine, config.num_warps * 32, 0};
}

KernelTemplate template_for(const ScheduleConfig& config) {
  return {"schedule_decode", KernelRole::schedule, config.num_threads, 0};
}

KernelTemplate template_for(const MergeStatesConfig& config) {
  return {"merge_states", KernelRole::merge, config.num_threads, 0};
}

KernelTemplate template_for(const PrefillConfig& config) {
  return {"prefill_sm80", KernelRole::prefill, config.num_warps * 32, config.shared_memory_bytes};
}

KernelTemplate template_for(const CombinePrefillConfig& config) {
  return {"combine_prefill", KernelRole::combine, config.num_threads, 0};
}

KernelTemplate template_for(const SparseMlaConfig& config) {
  return {"sparse_mla_sm80", KernelRole::sparse, config.num_warps * 32, config.shared_memory_bytes};
}

KernelTemplate template_for(const AppendKvCacheConfig& config) {
  return {"append_kv_cache", KernelRole::append, config.num_threads, 0};
}

}  // namespace

KernelTemplate template_of(const KernelConfig& config) {
  return std::visit([](const auto& fields) { return template_for(fields); }, config);
}

}  // namespace attnjit
