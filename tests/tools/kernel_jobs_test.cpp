#include "kernel_jobs.hpp"

#include <string>
#include <vector>

#include "catch.hpp"

namespace attnjit {
namespace {

PlannedDescriptor planned(const AttentionDescriptor& descriptor, std::vector<int> layers) {
  PlannedDescriptor result;
  result.descriptor = descriptor;
  result.layers = std::move(layers);
  return result;
}

ModelPlan plan_of(std::vector<PlannedDescriptor> descriptors) {
  ModelPlan plan;
  plan.planned = std::move(descriptors);
  return plan;
}

std::vector<TargetDevice> targets(const std::vector<std::string>& names) {
  std::vector<TargetDevice> devices;
  for (const std::string& name : names) {
    devices.push_back(find_target_device(name).value());
  }
  return devices;
}

// Legal, and served by no kernel.
AttentionDescriptor refused_descriptor() {
  AttentionDescriptor descriptor;
  descriptor.dtype_out = DataType::fp16;
  return descriptor;
}

}  // namespace

TEST_CASE("descriptors with equal kernels share jobs and each is named as a user") {
  AttentionDescriptor other;  // twice the heads at the same ratio: the same kernels
  other.num_q_heads = 64;
  other.num_kv_heads = 16;
  const KernelJobs list = list_kernel_jobs(
      plan_of({planned(AttentionDescriptor{}, {0, 2}), planned(other, {1})}), targets({"h200"}));
  REQUIRE(list.jobs.size() == 3);
  CHECK(list.refused.empty());
  for (const KernelJob& job : list.jobs) {
    REQUIRE(job.uses.size() == 2);
    CHECK(job.uses[0].layers == std::vector<int>{0, 2});
    CHECK(job.uses[1].layers == std::vector<int>{1});
  }
}

TEST_CASE("two cards of one architecture share jobs and two architectures do not") {
  const ModelPlan plan = plan_of({planned(AttentionDescriptor{}, {0})});
  CHECK(list_kernel_jobs(plan, targets({"h100", "h200"})).jobs.size() == 3);
  const KernelJobs two = list_kernel_jobs(plan, targets({"sm_80", "sm_90a"}));
  REQUIRE(two.jobs.size() == 6);
  CHECK(two.jobs.front().target.arch == "sm_80");
  CHECK(two.jobs.back().target.arch == "sm_90a");
}

TEST_CASE("a descriptor that no kernel serves is listed once with its layers and targets") {
  const KernelJobs list = list_kernel_jobs(
      plan_of({planned(AttentionDescriptor{}, {0}), planned(refused_descriptor(), {1, 2})}),
      targets({"sm_80", "sm_90a"}));
  CHECK(list.jobs.size() == 6);
  REQUIRE(list.refused.size() == 1);
  CHECK(list.refused[0].use.layers == std::vector<int>{1, 2});
  CHECK(list.refused[0].archs == std::vector<std::string>{"sm_80", "sm_90a"});
  REQUIRE(!list.refused[0].violations.empty());
  CHECK(list.refused[0].violations[0].field == "dtype_out");
}

}  // namespace attnjit
