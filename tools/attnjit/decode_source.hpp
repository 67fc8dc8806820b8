// What a user points at -> the calls to explain, check or time: those of a model, or one
// descriptor. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/model_plan.hpp"
#include "kernel_jobs.hpp"
#include "plan_arguments.hpp"

namespace attnjit {

// The descriptor that `what` holds as JSON text, or that the file it names holds; nullopt if it
// names a model. Throws UsageError for a file that cannot be read, DescriptorError, with the file's
// name first.
std::optional<AttentionDescriptor> find_descriptor(const std::string& what);

// Throws UsageError if an option is given that means nothing beside `what`.
void refuse_option(bool is_given, std::string_view option, std::string_view what);

// The same for every option that says how a model is deployed.
void refuse_deployment(const PlanOptions& given, std::string_view what);

struct PlannedCalls {
  std::vector<PlannedDescriptor> served;   // of a descriptor: one, without layers
  std::vector<RefusedDescriptor> refused;  // on every target
};

// The calls of arguments.model that are of `operations`, in those of its phases that these are of;
// what of them no kernel serves, those of other operations, and fields of the model that were not
// understood, are told on standard error. Throws as make_plan and find_descriptor, UsageError for
// options that mean nothing, and DescriptorError with all refusals if nothing is served, or for a
// descriptor of another operation.
PlannedCalls find_calls(const PlanArguments& arguments, const std::vector<Operation>& operations);

// The descriptors of those that are served.
std::vector<AttentionDescriptor> find_descriptors(const PlanArguments& arguments,
                                                  const std::vector<Operation>& operations);

}  // namespace attnjit
