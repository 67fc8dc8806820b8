// attnjit warm-worker: the process that `attnjit warm` starts for its compiles. No command for
// people, so that no help lists it.
#include <CLI/CLI.hpp>
#include <memory>

#include "command.hpp"
#include "warm_worker.hpp"

namespace attnjit {

void add_warm_worker_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("warm-worker", "Compile what `attnjit warm` asks for");
  command->group("");
  const auto worker = std::make_shared<WarmWorkerSettings>();
  command->add_option("--cache-dir", worker->provider.cache_directory);
  command->add_option("--nvrtc", worker->provider.nvrtc);
  command->add_option("--templates", worker->provider.templates);
  command->add_option("--memory-limit-bytes", worker->memory_limit_bytes);
  command->add_flag_callback("--force", [worker] { worker->recompile = Recompile::all; });
  command->callback([&action, worker] { action = [worker] { return run_warm_worker(*worker); }; });
}

}  // namespace attnjit
