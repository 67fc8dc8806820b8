// What a user points at -> one kernel's source: a descriptor, a layer of a model, or a key of the
// cache. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "attnjit/kernel_config.hpp"
#include "attnjit/model_plan.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "target_arguments.hpp"

namespace attnjit {

struct SourceRequest {
  std::string what;        // descriptor (JSON text or file), model (config.json or preset), or key
  PlanOptions deployment;  // of a model
  std::optional<int> layer;        // of a model; needed if its layers differ
  std::optional<Phase> phase;      // of a model; decode if unset
  std::optional<KernelRole> role;  // of a descriptor's kernels; the first if unset
  TargetArguments target;
  std::filesystem::path templates;        // see TemplateLibrary::open
  std::filesystem::path cache_directory;  // see resolve_cache_directory
};

struct KernelSource {
  RenderedKernel kernel;
  std::string key;  // digest, of one out of the cache; else empty
};

// Throws UsageError for what names nothing or too much, DescriptorError for what no kernel serves,
// ModelError, TemplateError, UnknownKeyError.
KernelSource find_kernel_source(const SourceRequest& request);

// The rendered kernel_config.cuh among the headers of `kernel`. Throws std::runtime_error if it has
// none.
const std::string& config_header_of(const RenderedKernel& kernel);

}  // namespace attnjit
