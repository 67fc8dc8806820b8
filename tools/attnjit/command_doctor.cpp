// attnjit doctor: what this machine has for compiling, keeping and running kernels, and what is
// wrong with it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache_places.hpp"
#include "command.hpp"
#include "doctor_findings.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorCommand {
  KernelProviderOptions provider;
  CachePlaces places;
  bool as_json = false;
};

bool is_problem(const Finding& finding) {
  return finding.verdict == Verdict::problem;
}

void print_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"verdict", to_string(finding.verdict)},
                    {"text", finding.text}});
  }
  const Json document = {{"schema", 1},
                         {"command", "doctor"},
                         {"version", ATTNJIT_VERSION},
                         {"healthy", std::none_of(findings.begin(), findings.end(), is_problem)},
                         {"findings", list}};
  print_result("{}\n", to_line(document));
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    print_result("{:<8} {:<10} {}\n", to_string(finding.verdict), finding.subject, finding.text);
  }
  const auto problems = std::count_if(findings.begin(), findings.end(), is_problem);
  print_result("attnjit {}: {} problem{}\n", ATTNJIT_VERSION, problems, problems == 1 ? "" : "s");
}

ExitCode run(const DoctorCommand& command) {
  KernelProviderOptions options = command.provider;
  options.cache_directory = command.places.directory;
  options.cache_layers = command.places.layers;
  const std::vector<Finding> findings = examine_machine(options);
  if (command.as_json) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  const auto problem = std::find_if(findings.begin(), findings.end(), is_problem);
  if (problem == findings.end()) {
    return ExitCode::succeeded;
  }
  return problem->subject == "nvrtc" ? ExitCode::missing_toolchain : ExitCode::failed;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "Examine NVRTC, driver, GPUs, cache and templates");
  const auto doctor = std::make_shared<DoctorCommand>();
  add_cache_places(*command, doctor->places);
  command->add_option("--nvrtc", doctor->provider.nvrtc,
                      "libnvrtc, or its directory (default ATTNJIT_NVRTC, else searched)");
  command->add_option("--templates", doctor->provider.templates,
                      "Read the templates from here (default ATTNJIT_TEMPLATES, else built in)");
  command->add_flag("--json", doctor->as_json, "Print one JSON document");
  command->callback([&action, doctor] { action = [doctor] { return run(*doctor); }; });
}

}  // namespace attnjit
