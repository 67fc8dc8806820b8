// The tables of tools/tuned, as they are built in, and which row serves a descriptor.
#include <algorithm>
#include <span>

#include "attnjit/config_selection.hpp"
#include "attnjit/embedded_file.hpp"
#include "attnjit/tuning_table.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_tuned;

TuningKey tuning_key(const AttentionDescriptor& descriptor) {
  const EffectiveMask mask = effective_mask(descriptor);
  return {.dtype = descriptor.dtype_q,
          .head_dim_qk = descriptor.head_dim_qk,
          .head_dim_v = descriptor.head_dim_v,
          .rows = descriptor.max_seqlen_q * descriptor.q_per_kv(),
          .page_size = descriptor.page_size,
          .value_source = descriptor.value_source,
          .mask = mask.mask,
          .window_left = mask.window_left,
          .window_right = mask.window_right,
          .has_sinks = descriptor.has_sinks,
          .batch_invariant = descriptor.batch_invariant};
}

std::vector<TuningTable> read_tuning_tables(std::span<const EmbeddedFile> files) {
  std::vector<TuningTable> tables;
  for (const EmbeddedFile& file : files) {
    try {
      tables.push_back(parse_tuning_table(file.name, file.text));
    } catch (const TuningError& error) {
      TuningTable& table = tables.emplace_back();
      table.device = file.name.substr(0, file.name.rfind('.'));
      table.problem = error.what();
    }
  }
  return tables;
}

const std::vector<TuningTable>& embedded_tuning_tables() {
  static const std::vector<TuningTable> tables = read_tuning_tables(embedded_tuned);
  return tables;
}

bool is_for(const TuningTable& table, const TargetDevice& device) {
  const std::optional<TargetDevice> preset = find_target_device(table.device);
  const bool is_named = device.name == table.device || device.name == table.card ||
                        (!table.problem.empty() && preset && device.l2_bytes == preset->l2_bytes);
  return preset && is_named && device.arch == preset->arch && device.num_sms == preset->num_sms &&
         device.shared_memory_per_block == preset->shared_memory_per_block;
}

const TunedRow* find_tuned_row(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  return find_tuned_row(embedded_tuning_tables(), descriptor, device);
}

const TunedRow* find_tuned_row(std::span<const TuningTable> tables,
                               const AttentionDescriptor& descriptor, const TargetDevice& device) {
  const TuningKey key = tuning_key(descriptor);
  for (const TuningTable& table : tables) {
    if (!is_for(table, device)) {
      continue;
    }
    if (!table.problem.empty()) {
      throw TuningError(table.problem);
    }
    const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const TunedRow& each) { return each.key == key; });
    return row == table.rows.end() ? nullptr : &*row;
  }
  return nullptr;
}

}  // namespace attnjit
