// ModelPlan -> KernelJobs: the distinct kernels that models need on some GPUs, and what no kernel
// serves. The list that `attnjit warm` works through and that `attnjit src` picks from. Pure
// functions, thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/model_plan.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// Who needs a kernel.
struct KernelUse {
  Phase phase = Phase::decode;
  std::vector<int> layers;  // of a model
  std::string caller;       // the model, where there are several; of a descriptor, its operation
};

struct KernelJob {
  KernelConfig config;
  TargetDevice target;
  std::vector<KernelUse> uses;  // none of a kernel that is known from a trace alone
  std::string traced_key;       // digest under which a run missed it; empty: of no trace
};

struct RefusedDescriptor {
  AttentionDescriptor descriptor;
  KernelUse use;
  std::vector<std::string> archs;  // the targets it is refused on; empty: on all
  std::vector<Violation> violations;
};

struct KernelJobs {
  std::vector<KernelJob> jobs;  // in order of first use
  std::vector<RefusedDescriptor> refused;
};

// "decode, layers 0-4, 6", after the model's name if there is one; "merge_states" of a descriptor.
std::string describe(const KernelUse& use);

// A paragraph: who is refused where, then each violation on a line of its own.
std::string format_refused(const RefusedDescriptor& refused);

// Selects the kernels of every planned descriptor on every target. A kernel that two descriptors,
// or two cards of one architecture, share is one job.
KernelJobs list_kernel_jobs(const ModelPlan& plan, std::span<const TargetDevice> targets);

// The same for `planned`, beside what `list` has; `model` becomes the caller of what layers use.
void add_kernel_jobs(KernelJobs& list, std::span<const PlannedDescriptor> planned,
                     std::span<const TargetDevice> targets, const std::string& model);

// Adds kernels that are known already.
void add_kernel_jobs(KernelJobs& list, std::span<const KernelJob> jobs);

}  // namespace attnjit
