#include "compile_estimate.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace attnjit {
namespace {

struct KindCost {
  std::string_view kernel;
  double milliseconds;
};

// Medians of the kernels of the presets, NVRTC 13.0, one core of a server.
constexpr std::array<KindCost, 10> kind_costs = {{{"paged_decode_sm80", 700},
                                                  {"swapped_decode_sm90", 500},
                                                  {"seesaw_decode_sm90", 1000},
                                                  {"combine_splits", 450},
                                                  {"schedule_decode", 320},
                                                  {"merge_states", 100},
                                                  {"append_kv_cache", 120},
                                                  {"prefill_sm80", 800},
                                                  {"combine_prefill", 90},
                                                  {"sparse_mla_sm80", 900}}};

double table_milliseconds(std::string_view kernel) {
  constexpr double of_unknown = 500;
  const auto* const found =
      std::find_if(kind_costs.begin(), kind_costs.end(),
                   [&](const KindCost& cost) { return cost.kernel == kernel; });
  return found == kind_costs.end() ? of_unknown : found->milliseconds;
}

}  // namespace

double CompileEstimate::milliseconds(const KernelJob& job) const {
  const std::string_view kernel = kernel_name(job.config);
  const auto kind = kinds_.find(kernel);
  if (kind != kinds_.end()) {
    return kind->second.total / kind->second.count;
  }
  const double pace = expected_ > 0 ? seen_ / expected_ : 1;
  return table_milliseconds(kernel) * pace;
}

void CompileEstimate::record(const KernelJob& job, double milliseconds) {
  Kind& kind = kinds_[kernel_name(job.config)];
  kind.total += milliseconds;
  ++kind.count;
  seen_ += milliseconds;
  expected_ += table_milliseconds(kernel_name(job.config));
}

double CompileEstimate::seconds(std::span<const KernelJob* const> jobs, int workers) const {
  std::vector<double> ends(static_cast<std::size_t>(std::max(1, workers)), 0.0);
  for (const KernelJob* job : jobs) {
    *std::min_element(ends.begin(), ends.end()) += milliseconds(*job);
  }
  return *std::max_element(ends.begin(), ends.end()) / 1000;
}

std::vector<std::size_t> longest_first(std::span<const KernelJob> jobs) {
  const CompileEstimate estimate;
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return estimate.milliseconds(jobs[left]) > estimate.milliseconds(jobs[right]);
  });
  return order;
}

}  // namespace attnjit
