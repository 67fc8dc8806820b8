#include "target_arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include <fmt/format.h>

#include "attnjit/driver_error.hpp"
#include "attnjit/shown_text.hpp"
#include "attnjit/target_device_query.hpp"
#include "command.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

constexpr std::string_view default_arch = "sm_90a";

// "a100 (sm_80), …"
std::string known_targets() {
  std::string text;
  for (const TargetDevice& device : target_device_presets()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.name, device.arch);
  }
  return text;
}

TargetDevice find_target(const std::string& name) {
  const std::optional<TargetDevice> device = find_target_device(name);
  if (!device) {
    throw UsageError(
        fmt::format("arch = {}: no such target; fix: name an architecture or a card "
                    "out of {}",
                    shown_text(name), known_targets()));
  }
  return *device;
}

void add_target(std::vector<TargetDevice>& targets, const TargetDevice& target) {
  const bool known = std::any_of(targets.begin(), targets.end(), [&](const TargetDevice& other) {
    return other.name == target.name && other.arch == target.arch;
  });
  if (!known) {
    targets.push_back(target);
  }
}

// The GPUs of this machine; none where there is no usable driver, which making kernels needs not.
std::vector<TargetDevice> find_local_targets() {
  std::vector<TargetDevice> targets;
  try {
    const int count = count_devices();
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      add_target(targets, query_target_device(ordinal));
    }
  } catch (const DriverError& error) {
    if (error.problem() == DriverProblem::failed || error.problem() == DriverProblem::too_old) {
      print_message(
          "attnjit: making kernels for {}, for the GPUs of this machine cannot be "
          "asked: {}\n",
          default_arch, error.what());
    }
  }
  return targets;
}

}  // namespace

void add_target_arguments(CLI::App& command, TargetArguments& arguments) {
  command
      .add_option("--arch,--device-preset", arguments.names,
                  "Architectures or cards, e.g. sm_90a,rtx4090 (default: this machine's GPUs, "
                  "else sm_90a)")
      ->delimiter(',')
      ->type_name("TARGET");
}

std::vector<TargetDevice> find_targets(const TargetArguments& arguments) {
  std::vector<TargetDevice> targets;
  for (const std::string& name : arguments.names) {
    add_target(targets, find_target(name));
  }
  if (arguments.names.empty()) {
    targets = find_local_targets();
    if (targets.empty()) {
      targets.push_back(find_target(std::string(default_arch)));
    }
  }
  return targets;
}

}  // namespace attnjit
