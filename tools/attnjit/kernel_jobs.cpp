#include "kernel_jobs.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/config_selection.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

bool same_violations(const std::vector<Violation>& left, const std::vector<Violation>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Violation& a, const Violation& b) {
                      return std::tie(a.field, a.value, a.rule, a.fix) ==
                             std::tie(b.field, b.value, b.rule, b.fix);
                    });
}

void add_use(std::vector<KernelUse>& uses, const KernelUse& use) {
  const bool known = std::any_of(uses.begin(), uses.end(), [&](const KernelUse& other) {
    return other.phase == use.phase && other.layers == use.layers && other.caller == use.caller;
  });
  if (!known) {
    uses.push_back(use);
  }
}

KernelJob& find_or_add(std::vector<KernelJob>& jobs, const KernelConfig& config,
                       const TargetDevice& target) {
  auto job = std::find_if(jobs.begin(), jobs.end(), [&](const KernelJob& other) {
    return other.target.arch == target.arch && other.config == config;
  });
  if (job == jobs.end()) {
    job = jobs.insert(job, {.config = config, .target = target, .uses = {}, .traced_key = ""});
  }
  return *job;
}

KernelUse use_of(const PlannedDescriptor& planned, const std::string& model) {
  const bool is_descriptor = planned.layers.empty();
  return {planned.phase, planned.layers,
          is_descriptor ? std::string(to_string(planned.descriptor.operation)) : model};
}

// A rule about the descriptor alone is broken on every target: told once.
void add_refusal(std::vector<RefusedDescriptor>& refused, const PlannedDescriptor& planned,
                 const KernelUse& use, const TargetDevice& target,
                 const std::vector<Violation>& violations) {
  auto found = std::find_if(refused.begin(), refused.end(), [&](const RefusedDescriptor& other) {
    return other.descriptor == planned.descriptor && other.use.phase == use.phase &&
           other.use.layers == use.layers && other.use.caller == use.caller &&
           same_violations(other.violations, violations);
  });
  if (found == refused.end()) {
    found = refused.insert(
        found,
        {.descriptor = planned.descriptor, .use = use, .archs = {}, .violations = violations});
  }
  if (std::find(found->archs.begin(), found->archs.end(), target.arch) == found->archs.end()) {
    found->archs.push_back(target.arch);
  }
}

}  // namespace

std::string describe(const KernelUse& use) {
  if (use.layers.empty()) {
    return use.caller;
  }
  return fmt::format("{}{}{}, {} {}", use.caller, use.caller.empty() ? "" : ": ",
                     to_string(use.phase), use.layers.size() == 1 ? "layer" : "layers",
                     format_ranges(use.layers));
}

std::string format_refused(const RefusedDescriptor& refused) {
  std::string text = "refused: " + describe(refused.use);
  if (!refused.archs.empty()) {
    text += fmt::format(", {}", fmt::join(refused.archs, ", "));
  }
  text += "\n";
  for (const Violation& violation : refused.violations) {
    text += "  " + to_string(violation) + "\n";
  }
  return text;
}

KernelJobs list_kernel_jobs(const ModelPlan& plan, std::span<const TargetDevice> targets) {
  KernelJobs list;
  add_kernel_jobs(list, plan.planned, targets, "");
  return list;
}

void add_kernel_jobs(KernelJobs& list, std::span<const PlannedDescriptor> planned,
                     std::span<const TargetDevice> targets, const std::string& model) {
  for (const TargetDevice& target : targets) {
    for (const PlannedDescriptor& each : planned) {
      const KernelUse use = use_of(each, model);
      try {
        for (const KernelConfig& config : select_configs(each.descriptor, target)) {
          add_use(find_or_add(list.jobs, config, target).uses, use);
        }
      } catch (const DescriptorError& error) {
        add_refusal(list.refused, each, use, target, error.violations());
      }
    }
  }
}

void add_kernel_jobs(KernelJobs& list, std::span<const KernelJob> jobs) {
  for (const KernelJob& job : jobs) {
    find_or_add(list.jobs, job.config, job.target).traced_key = job.traced_key;
  }
}

}  // namespace attnjit
