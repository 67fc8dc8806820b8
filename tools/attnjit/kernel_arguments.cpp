// The options that name kernels.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "kernel_source.hpp"
#include "plan_arguments.hpp"

namespace attnjit {
namespace {

// Declares an option that takes the name of one of `values`.
template <typename Enum>
void add_choice(CLI::App& command, const std::string& name, std::optional<Enum>& choice,
                const std::vector<Enum>& values, const std::string& description) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    names.emplace_back(to_string(value));
  }
  const auto choose = [&choice, values](const std::string& text) {
    choice = *std::find_if(values.begin(), values.end(),
                           [&](Enum value) { return to_string(value) == text; });
  };
  command.add_option_function<std::string>(name, choose, description)->check(CLI::IsMember(names));
}

}  // namespace

void add_kernel_options(CLI::App& command, KernelRequest& request) {
  add_choice(command, "--kernel", request.role,
             {KernelRole::attention, KernelRole::combine, KernelRole::schedule, KernelRole::merge,
              KernelRole::append, KernelRole::prefill, KernelRole::sparse},
             "Which of the operation's kernels");
  command.add_option("--layer", request.layer, "Of a model");
  add_choice(command, "--phase", request.phase, {Phase::decode, Phase::prefill}, "Of a model");
  add_deployment_options(command, request.deployment);
  add_target_arguments(command, request.target);
  command.add_option("--templates", request.provider.templates,
                     "Read the templates from here (default ATTNJIT_TEMPLATES, else built in)");
  command.add_option("--cache-dir", request.provider.cache_directory,
                     "Cache directory (default ATTNJIT_CACHE_DIR, else the user's cache)");
}

void add_kernel_arguments(CLI::App& command, KernelRequest& request) {
  command
      .add_option("what", request.what,
                  "Descriptor (JSON text or file), model (config.json or preset), or key")
      ->required();
  add_kernel_options(command, request);
}

void add_compiler_option(CLI::App& command, KernelRequest& request) {
  command.add_option("--nvrtc", request.provider.nvrtc,
                     "libnvrtc, or its directory (default ATTNJIT_NVRTC, else searched)");
}

}  // namespace attnjit
