#include "warm_report.hpp"

#include <string>
#include <utility>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

// The three kernels of a plain decode, each in a state.
struct Case {
  KernelJobs list;
  WarmRun run;

  explicit Case(const std::vector<WarmState>& states) {
    const TargetDevice device = find_target_device("h200").value();
    const std::vector<KernelConfig> configs = select_configs(AttentionDescriptor{}, device);
    for (std::size_t i = 0; i < states.size(); ++i) {
      list.jobs.push_back({configs.at(i), device, {{Phase::decode, {0, 1}, ""}}, ""});
      WarmedKernel kernel;
      kernel.state = states[i];
      kernel.key = std::string(32, 'a');
      run.kernels.push_back(kernel);
    }
    run.seconds = 2.14;
  }

  void fail_with(const std::string& problem) {
    for (WarmedKernel& kernel : run.kernels) {
      kernel.problem = problem;
    }
  }

  void add_refusal() {
    list.refused.push_back({AttentionDescriptor{},
                            {Phase::prefill, {0, 1, 2, 4}, ""},
                            {"sm_80", "sm_90a"},
                            {{"operation", "prefill", "only decode is served", "use decode"}}});
  }

  WarmReport report() const {
    return {.what = {"m"},
            .traces = {},
            .model = "m",
            .model_type = "t",
            .cache_directory = "c",
            .list = list,
            .run = run};
  }
};

std::string closing_line(const std::vector<WarmState>& states) {
  return format_closing_line(Case(states).report());
}

ExitCode exit_code(const std::vector<WarmState>& states) {
  return warm_exit_code(Case(states).report());
}

constexpr WarmState compiled = WarmState::compiled;
constexpr WarmState cached = WarmState::cached;
constexpr WarmState not_run = WarmState::not_run;

}  // namespace

TEST_CASE("the closing line of a warm counts what became of each kernel") {
  CHECK(closing_line({compiled, compiled, cached}) ==
        "3 kernels: 2 compiled in 2.1 s, 1 already cached");
  CHECK(closing_line({compiled}) == "1 kernel: 1 compiled in 2.1 s");
  CHECK(closing_line({cached, cached, cached}) == "nothing to compile: all 3 kernels are cached");
  CHECK(closing_line({cached}) == "nothing to compile: the 1 kernel is cached");
  CHECK(closing_line({cached, WarmState::compile_failed, WarmState::toolchain_failed}) ==
        "3 kernels: 1 already cached, 2 failed");
  CHECK(closing_line({}) == "no kernels");
}

TEST_CASE("the closing line of a warm counts refused descriptors") {
  Case one({cached});
  one.add_refusal();
  CHECK(format_closing_line(one.report()) ==
        "nothing to compile: the 1 kernel is cached; 1 descriptor refused");
}

TEST_CASE("an interrupted warm says how far it got and ends with 130") {
  Case interrupted({compiled, cached, not_run});
  interrupted.run.interrupted = true;
  CHECK(format_closing_line(interrupted.report()) ==
        "interrupted; 3 kernels: 1 compiled in 2.1 s, 1 already cached, 1 not reached; the cache "
        "is whole, run the command again to go on");
  CHECK(warm_exit_code(interrupted.report()) == ExitCode::interrupted);
}

TEST_CASE("the exit code of a warm is that of its worst kernel") {
  CHECK(exit_code({}) == ExitCode::succeeded);
  CHECK(exit_code({compiled, cached}) == ExitCode::succeeded);
  CHECK(exit_code({cached, WarmState::toolchain_failed}) == ExitCode::missing_toolchain);
  CHECK(exit_code({WarmState::toolchain_failed, WarmState::compile_failed}) == ExitCode::failed);
  CHECK(exit_code({compiled, WarmState::not_stored, not_run}) == ExitCode::failed);
  for (const WarmState ended :
       {WarmState::crashed, WarmState::timed_out, WarmState::out_of_memory}) {
    CHECK(exit_code({compiled, ended, WarmState::toolchain_failed}) == ExitCode::failed);
  }
}

TEST_CASE("refused descriptors fail a warm only where nothing else was warmed") {
  Case nothing({});
  nothing.add_refusal();
  CHECK(warm_exit_code(nothing.report()) == ExitCode::unsupported_descriptor);
  Case something({cached});
  something.add_refusal();
  CHECK(warm_exit_code(something.report()) == ExitCode::succeeded);
}

TEST_CASE("a refusal names phase, layers, targets and every broken rule") {
  Case one({});
  one.add_refusal();
  CHECK(format_refusals(one.report()) ==
        "refused: prefill, layers 0-2, 4, sm_80, sm_90a\n"
        "  operation = prefill: only decode is served; fix: use decode\n");
}

TEST_CASE("the table of a warm holds only kernels that are in the cache") {
  const Case mixed({compiled, WarmState::compile_failed, cached});
  const std::string table = format_warm_table(mixed.report());
  CHECK(table.find("paged_decode_sm80") != std::string::npos);
  CHECK(table.find("combine_splits") == std::string::npos);
  CHECK(table.find("  cached  aaaaaaaaaaaa\n") != std::string::npos);
  CHECK(format_warm_table(Case({not_run}).report()).empty());
}

TEST_CASE("a reason of the toolchain is told once per target and one of a kernel each time") {
  Case toolchain({WarmState::toolchain_failed, WarmState::toolchain_failed});
  toolchain.fail_with("no NVRTC");
  const std::string once = format_failures(toolchain.report());
  CHECK(once.starts_with("failed, sm_90a: paged_decode_sm80 "));
  CHECK(once.find("; combine_splits ") != std::string::npos);
  CHECK(once.find("no NVRTC") == once.rfind("no NVRTC"));
  Case kernels({WarmState::compile_failed, WarmState::compile_failed});
  kernels.fail_with("bad source");
  const std::string each = format_failures(kernels.report());
  CHECK(each.find("bad source") != each.rfind("bad source"));
  CHECK(format_failures(Case({compiled}).report()).empty());
}

}  // namespace attnjit
