// attnjit src: shows the source of a kernel: of a descriptor, of a model's layer, or as it was
// compiled into an entry of the cache.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "json_document.hpp"
#include "kernel_source.hpp"
#include "kernel_stage.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

struct SrcCommand {
  KernelRequest request;
  std::string stage = "flat";
  bool as_json = false;
};

KernelStage stage_called(const std::string& name) {
  const std::vector<KernelStage>& stages = kernel_stages();
  return *std::find_if(stages.begin(), stages.end(),
                       [&](KernelStage stage) { return to_string(stage) == name; });
}

std::string to_document(const KernelSource& source, const std::string& stage,
                        const std::string& text) {
  using Json = nlohmann::ordered_json;
  Json document = {{"schema", 1},
                   {"command", "src"},
                   {"kernel", source.kernel.name},
                   {"entry", source.kernel.entry},
                   {"arch", source.kernel.arch},
                   {"config", Json::parse(source.kernel.config)},
                   {"stage", stage},
                   {"text", text}};
  if (!source.key.empty()) {
    document["key"] = source.key;
  }
  // Templates of the user's own need not be UTF-8.
  return to_line(std::move(document));
}

ExitCode run(const SrcCommand& command) {
  const KernelSource source = find_kernel_source(command.request);
  const std::string text =
      stage_text(source, stage_called(command.stage), command.request.provider);
  if (command.as_json) {
    print_result("{}\n", to_document(source, command.stage, text));
  } else {
    write_text(stdout, text);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_src_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("src", "Show the source of a kernel");
  const auto src = std::make_shared<SrcCommand>();
  add_kernel_arguments(*command, src->request);
  command->get_option("--kernel")
      ->description("Which of the operation's kernels (default: the first)");
  command->get_option("--layer")->description("Of a model; needed if its layers differ");
  command->get_option("--phase")->description("Of a model (default decode)");
  add_compiler_option(*command, src->request);
  std::vector<std::string> stages;
  for (const KernelStage stage : kernel_stages()) {
    stages.emplace_back(to_string(stage));
  }
  command
      ->add_option("--stage", src->stage,
                   "flat: with all headers; rendered: without; config: its constants; ptx: made "
                   "now; sass: of the cubin")
      ->check(CLI::IsMember(stages))
      ->capture_default_str();
  command->add_flag("--json", src->as_json, "Print one JSON document");
  command->callback([&action, src] { action = [src] { return run(*src); }; });
}

}  // namespace attnjit
