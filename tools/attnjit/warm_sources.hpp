// What `attnjit warm` was pointed at -> the kernels to make: models, descriptors, and traces of
// what a run missed, in any number. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attnjit/model_plan.hpp"
#include "kernel_jobs.hpp"
#include "target_arguments.hpp"

namespace attnjit {

struct WarmSources {
  std::vector<std::string> what;  // config.json or preset; descriptor as JSON text or file
  PlanOptions deployment;         // of the models
  std::vector<std::filesystem::path> traces;
  TargetArguments targets;  // of `what`; a trace names its own
};

struct WarmWork {
  KernelJobs list;
  std::string model;                 // the name, where `what` is one model; else empty
  std::string model_type;            // of that
  std::vector<std::string> remarks;  // for people: fields and lines that were not understood
};

// Throws UsageError where nothing is named, for options that mean nothing, and for what cannot be
// read; DescriptorError and ModelError.
WarmWork find_warm_work(const WarmSources& sources);

}  // namespace attnjit
