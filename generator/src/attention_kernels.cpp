#include "attention_kernels.hpp"

#include <fmt/format.h>

namespace attnjit {
namespace {

constexpr int most_swapped_rows = 16;  // beyond, wgmma of 64 rows is as fast: memory is the bound
constexpr int most_seesaw_columns = 512;  // two warpgroups hold half of them each

using Reasons = std::vector<std::string>;

void require_multiple(Reasons& unmet, const char* field, int value, int divisor) {
  if (value % divisor != 0) {
    unmet.push_back(fmt::format("{} = {} is no multiple of {}", field, value, divisor));
  }
}

// Of both kernels for a latent cache by wgmma.
Reasons unmet_by_latent_decode(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  Reasons unmet;
  if (device.arch != "sm_90a") {
    unmet.push_back(fmt::format("needs sm_90a, {} is {}", device.name, device.arch));
  }
  if (descriptor.value_source != ValueSource::prefix_of_k) {
    unmet.push_back(
        fmt::format("value_source = {} is not prefix_of_k", to_string(descriptor.value_source)));
  }
  require_multiple(unmet, "head_dim_qk", descriptor.head_dim_qk, box_columns);
  if (descriptor.mask != MaskKind::none && descriptor.mask != MaskKind::causal &&
      descriptor.mask != MaskKind::sliding_window) {
    unmet.push_back(fmt::format("mask = {} is neither none nor causal nor sliding_window",
                                to_string(descriptor.mask)));
  }
  return unmet;
}

}  // namespace

// Two consumers share V's boxes evenly.
Reasons unmet_by_swapped_decode(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  Reasons unmet = unmet_by_latent_decode(descriptor, device);
  require_multiple(unmet, "head_dim_v", descriptor.head_dim_v, 2 * box_columns);
  const int rows = descriptor.max_seqlen_q * descriptor.q_per_kv();
  if (rows > most_swapped_rows) {
    unmet.push_back(
        fmt::format("{} query rows (max_seqlen_q {} of {} heads per kv head) are more than {}",
                    rows, descriptor.max_seqlen_q, descriptor.q_per_kv(), most_swapped_rows));
  }
  return unmet;
}

// Each quarter of the output's columns is whole boxes, and a box that is no part of V is there to
// hold probabilities.
Reasons unmet_by_seesaw_decode(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  Reasons unmet = unmet_by_latent_decode(descriptor, device);
  require_multiple(unmet, "head_dim_v", descriptor.head_dim_v, 4 * box_columns);
  if (descriptor.head_dim_v > most_seesaw_columns) {
    unmet.push_back(
        fmt::format("head_dim_v = {} is more than {}", descriptor.head_dim_v, most_seesaw_columns));
  }
  if (descriptor.head_dim_qk <= descriptor.head_dim_v) {
    unmet.push_back(fmt::format("head_dim_qk = {} is no more than head_dim_v = {}",
                                descriptor.head_dim_qk, descriptor.head_dim_v));
  }
  return unmet;
}

}  // namespace attnjit
