// attnjit src: shows the source of a kernel: of a descriptor, of a model's layer, or as it was
// compiled into an entry of the cache.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/kernel_renderer.hpp"
#include "command.hpp"
#include "kernel_source.hpp"
#include "plan_arguments.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

struct SrcCommand {
  SourceRequest request;
  std::string stage = "flat";
  bool as_json = false;
};

std::string text_of(const KernelSource& source, const std::string& stage) {
  if (stage == "config") {
    return config_header_of(source.kernel);
  }
  return stage == "rendered" ? source.kernel.source : flatten(source.kernel);
}

std::string to_document(const KernelSource& source, const std::string& stage) {
  using Json = nlohmann::ordered_json;
  Json document = {{"schema", 1},
                   {"command", "src"},
                   {"kernel", source.kernel.name},
                   {"entry", source.kernel.entry},
                   {"arch", source.kernel.arch},
                   {"config", Json::parse(source.kernel.config)},
                   {"stage", stage},
                   {"text", text_of(source, stage)}};
  if (!source.key.empty()) {
    document["key"] = source.key;
  }
  // Templates of the user's own need not be UTF-8.
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ExitCode run(const SrcCommand& command) {
  const KernelSource source = find_kernel_source(command.request);
  if (command.as_json) {
    print_result("{}\n", to_document(source, command.stage));
  } else {
    const std::string text = text_of(source, command.stage);
    write_text(stdout, text);
  }
  return ExitCode::succeeded;
}

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

void add_src_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("src", "Show the source of a kernel");
  const auto src = std::make_shared<SrcCommand>();
  SourceRequest& request = src->request;
  command
      ->add_option("what", request.what,
                   "Descriptor (JSON text or file), model (config.json or preset), or key")
      ->required();
  command
      ->add_option("--stage", src->stage,
                   "flat: with all headers; rendered: without; config: its constants")
      ->check(CLI::IsMember({"flat", "rendered", "config"}))
      ->capture_default_str();
  add_choice(*command, "--kernel", request.role,
             {KernelRole::attention, KernelRole::combine, KernelRole::schedule, KernelRole::merge,
              KernelRole::append, KernelRole::prefill, KernelRole::sparse},
             "Which of the operation's kernels (default: the first)");
  command->add_option("--layer", request.layer, "Of a model; needed if its layers differ");
  add_choice(*command, "--phase", request.phase, {Phase::decode, Phase::prefill},
             "Of a model (default decode)");
  add_deployment_options(*command, request.deployment);
  add_target_arguments(*command, request.target);
  command->add_option("--templates", request.templates,
                      "Read the templates from here (default ATTNJIT_TEMPLATES, else built in)");
  command->add_option(
      "--cache-dir", request.cache_directory,
      "Where keys are looked up (default ATTNJIT_CACHE_DIR, else the user's cache)");
  command->add_flag("--json", src->as_json, "Print one JSON document");
  command->callback([&action, src] { action = [src] { return run(*src); }; });
}

}  // namespace attnjit
