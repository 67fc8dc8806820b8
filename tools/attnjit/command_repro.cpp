// attnjit repro: a kernel as a program of its own, for a bug report.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "kernel_source.hpp"
#include "reproduction.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ReproCommand {
  KernelRequest request;
  ReproductionCase sizes;
  fs::path out;
  bool as_json = false;
};

void require_empty(const fs::path& directory) {
  std::error_code ignored;
  if (directory.empty() ||
      (fs::exists(directory, ignored) &&
       (!fs::is_directory(directory, ignored) || !fs::is_empty(directory, ignored)))) {
    throw UsageError(fmt::format("out = {}: must be a new or an empty directory; fix: name one",
                                 shown_text(directory.string())));
  }
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw std::runtime_error(
        fmt::format("{}: cannot be written; fix: name another directory with --out",
                    shown_text(path.string())));
  }
}

ExitCode run(const ReproCommand& command) {
  require_empty(command.out);
  const KernelSource source = find_kernel_source(command.request);
  const std::vector<SourceFile> files = make_reproduction(source, command.sizes);
  std::vector<std::string> names;
  for (const SourceFile& file : files) {
    write_file(command.out / file.name, file.text);
    names.push_back(file.name);
  }
  fs::permissions(command.out / "build.sh",
                  fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add);
  if (command.as_json) {
    Json document = {{"schema", 1},
                     {"command", "repro"},
                     {"kernel", source.kernel.name},
                     {"arch", source.kernel.arch}};
    set_path(document, "directory", command.out);
    document["files"] = names;
    print_result("{}\n", to_line(std::move(document)));
    return ExitCode::succeeded;
  }
  print_result(
      "{} for {}: {} files in {}\nmain.cu says what it does not reproduce; build.sh builds "
      "./repro\n",
      source.kernel.name, source.kernel.arch, files.size(), shown_text(command.out.string()));
  return ExitCode::succeeded;
}

}  // namespace

void add_repro_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("repro", "Write a program that launches a kernel, for a bug report");
  const auto repro = std::make_shared<ReproCommand>();
  add_kernel_arguments(*command, repro->request);
  command->add_option("--out", repro->out, "Directory to write, new or empty")->required();
  command->add_option("--batch", repro->sizes.batch, "Requests")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--seqlen-q", repro->sizes.seqlen_q,
                   "Query tokens per request; 0: the descriptor's most of a decode, else 64")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--seqlen-kv", repro->sizes.seqlen_kv, "Keys per request")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command->add_option("--seed", repro->sizes.seed, "Of the random inputs")->capture_default_str();
  command->add_flag("--json", repro->as_json, "Print one JSON document");
  command->callback([&action, repro] { action = [repro] { return run(*repro); }; });
}

}  // namespace attnjit
