// What a user points at -> kernels: of a descriptor, of a model's layers, or under a key of the
// cache. The one way in which every command that looks at kernels names them. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/kernel_provider.hpp"
#include "attnjit/model_plan.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "attnjit/target_device.hpp"
#include "target_arguments.hpp"

namespace CLI {
class App;
}

namespace attnjit {

struct KernelRequest {
  std::string what;        // descriptor (JSON text or file), model (config.json or preset), or key
  PlanOptions deployment;  // of a model
  std::optional<int> layer;        // of a model
  std::optional<Phase> phase;      // of a model
  std::optional<KernelRole> role;  // of a descriptor's kernels
  TargetArguments target;
  KernelProviderOptions provider;  // templates, cache and compiler
};

// Declares what --kernel, --layer, --phase, --arch, --templates, --cache-dir and a model's
// deployment say; `request` must outlive the parse.
void add_kernel_options(CLI::App& command, KernelRequest& request);

// The same and, first, the argument that names the kernel.
void add_kernel_arguments(CLI::App& command, KernelRequest& request);

// Declares --nvrtc, of commands that may compile.
void add_compiler_option(CLI::App& command, KernelRequest& request);

struct KernelSource {
  RenderedKernel kernel;
  std::string key;                                // digest, of one out of the cache; else empty
  std::optional<TargetDevice> target;             // of one that was rendered now
  std::optional<AttentionDescriptor> descriptor;  // of one that was rendered for a descriptor
};

// The one kernel that is named: the first of a descriptor unless a role is given; of a model's
// decode unless a phase is given, and of a layer unless all need the same. Throws UsageError for
// what names nothing or too much, DescriptorError for what no kernel serves, ModelError,
// TemplateError, UnknownKeyError.
KernelSource find_kernel_source(const KernelRequest& request);

// Every kernel that is named: all roles of a descriptor, all layers and phases of a model, on all
// targets, each once. What of a model no kernel serves is told on standard error. Throws as above,
// DescriptorError if nothing of a model is served.
std::vector<KernelSource> find_kernel_sources(const KernelRequest& request);

// The rendered kernel_config.cuh among the headers of `kernel`. Throws std::runtime_error if it has
// none.
const std::string& config_header_of(const RenderedKernel& kernel);

}  // namespace attnjit
