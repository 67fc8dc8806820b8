// Property 12: process-parallel warming, whatever befalls a worker, the parent or the cache. The
// compiler is fake_nvrtc.cpp.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "../cache/scratch_directory.hpp"
#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "child_command.hpp"
#include "command_line.hpp"
#include "fake_warm.hpp"

namespace attnjit {
namespace {

using nlohmann::json;
using test::check_completes;
using test::counts_of;
using test::FakeWarm;
using test::holds;
using test::model_kernels;
using test::ScopedVariable;

}  // namespace

TEST_CASE(
    "process-parallel warm: a job that crashes is told with kernel and config, and the others go "
    "on") {
  const FakeWarm warm("crash:combine_splits");
  const CommandOutput output = warm.run("-j 2");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, "5 kernels: 4 compiled in "));
  CHECK(holds(output.out, ", 1 failed"));
  CHECK(
      holds(output.err, "kernel combine_splits for sm_90a its worker process ended by signal 11"));
  CHECK(holds(output.err, "config: {\"kernel\":\"combine_splits\""));
  check_completes(warm);
}

TEST_CASE(
    "process-parallel warm: a job that hangs is ended when its time is up, and the others go on") {
  const FakeWarm warm("hang:combine_splits hang:schedule_decode");
  const CommandOutput output = warm.run("-j 1 --timeout 0.5");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, "5 kernels: 3 compiled in "));
  CHECK(holds(output.err, "kernel combine_splits for sm_90a was not done after 0.5 s"));
  CHECK(holds(output.err, "kernel schedule_decode for sm_90a was not done after 0.5 s"));
  CHECK(warm.all_workers_ended());
  check_completes(warm);
}

TEST_CASE("process-parallel warm: a job that takes more memory than allowed fails alone") {
  const FakeWarm warm("memory:combine_splits");
  const CommandOutput output = warm.run("-j 2 --memory-limit 4000 --json");
  CHECK(output.exit_code == 1);
  CHECK(counts_of(output).at("compiled") == 4);
  for (const json& kernel : json::parse(output.out).at("kernels")) {
    CHECK((kernel.at("state") == "out_of_memory") ==
          (kernel.at("role") == "combine" && kernel.at("config").contains("num_warps")));
  }
  check_completes(warm);
}

TEST_CASE(
    "process-parallel warm: Ctrl-C ends after the jobs in hand with 130 and leaves a valid cache") {
  const FakeWarm warm("", 300);
  const pid_t child = start_attnjit(warm.words("-j 2"));
  CHECK(wait_until([&] { return !warm.compiles().empty(); }));
  kill(child, SIGINT);
  CHECK(wait_for_attnjit(child) == 130);
  CHECK(warm.compiles().size() <= 2);
  // What was in hand is kept: a kernel and its toolchain record each.
  CHECK(DiskCache(warm.cache(), nullptr).list().size() == 2 * warm.compiles().size());
  CHECK(wait_until([&] { return warm.all_workers_ended(); }));
  check_completes(warm);
}

TEST_CASE("process-parallel warm: SIGTERM ends workers that hang, with 130") {
  const FakeWarm warm("hang:prefill_sm80 hang:swapped_decode_sm90");
  const pid_t child = start_attnjit(warm.words("-j 2"));
  CHECK(wait_until([&] { return warm.compiles().size() >= 2; }));
  kill(child, SIGTERM);
  CHECK(wait_for_attnjit(child) == 130);
  CHECK(warm.all_workers_ended());
  check_completes(warm);
}

TEST_CASE("process-parallel warm: workers end with a parent that is killed, also in a compile") {
  const FakeWarm warm("hang:prefill_sm80 hang:swapped_decode_sm90");
  const pid_t child = start_attnjit(warm.words("-j 2"));
  CHECK(wait_until([&] { return warm.compiles().size() >= 2; }));
  CHECK(!warm.all_workers_ended());
  kill(child, SIGKILL);
  CHECK(wait_for_attnjit(child) == -SIGKILL);
  CHECK(wait_until([&] { return warm.all_workers_ended(); }));
  check_completes(warm);
}

TEST_CASE("process-parallel warm: a warm that was killed goes on where it was") {
  const FakeWarm warm("", 200);
  const pid_t child = start_attnjit(warm.words("-j 1"));
  CHECK(wait_until([&] { return warm.compiles().size() >= 3; }));
  kill(child, SIGKILL);
  CHECK(wait_for_attnjit(child) == -SIGKILL);
  check_completes(warm);
  CHECK(warm.compiles().size() <= model_kernels + 1);
}

TEST_CASE("process-parallel warm: two warms of one directory at once compile each kernel once") {
  const FakeWarm warm("", 50);
  const pid_t one = start_attnjit(warm.words("-j 2"));
  const pid_t other = start_attnjit(warm.words("-j 2"));
  CHECK(wait_for_attnjit(one) == 0);
  CHECK(wait_for_attnjit(other) == 0);
  CHECK(warm.compiles().size() == model_kernels);
  check_completes(warm);
}

TEST_CASE("process-parallel warm: two workers share the jobs") {
  const FakeWarm warm("", 200);
  CHECK(warm.run("-j 2").exit_code == 0);
  std::map<long, int> jobs;
  for (const std::string& line : warm.compiles()) {
    ++jobs[std::stol(line)];
  }
  REQUIRE(jobs.size() == 2);
  CHECK(jobs.begin()->second + jobs.rbegin()->second == static_cast<int>(model_kernels));
}

TEST_CASE("process-parallel warm: a layer that is missing or a bad setting costs a warning alone") {
  const FakeWarm warm;
  const ScopedVariable layers("ATTNJIT_CACHE_LAYERS", "/nonexistent");
  const ScopedVariable bytes("ATTNJIT_CACHE_MAX_BYTES", "abc");
  const CommandOutput output = warm.run("-j 2");
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "5 kernels: 5 compiled in "));
}

TEST_CASE("process-parallel warm: what is cached is found without a worker") {
  const FakeWarm warm;
  CHECK(warm.run().exit_code == 0);
  const CommandOutput again = warm.run("--progress json");
  CHECK(again.exit_code == 0);
  CHECK(holds(again.err, "\"event\":\"finish\""));
  CHECK(!holds(again.err, "\"event\":\"start\""));
}

TEST_CASE("process-parallel warm: a cache that cannot be written ends the run with 1") {
  const FakeWarm warm;
  CHECK(warm.run_in_shell("ulimit -f 1; ", "-j 2 --progress none", ">/dev/null 2>&1") == 1);
  CHECK(DiskCache(warm.cache(), nullptr).list().empty());
  CHECK(warm.compiles().size() <= 2);
  check_completes(warm);
}

TEST_CASE(
    "process-parallel warm: without standard output the kernels are warmed, and the end is 1") {
  const FakeWarm warm;
  CHECK(warm.run_in_shell("", "-j 2", ">&- 2>/dev/null") == 1);
  CHECK(counts_of(warm.run("--json")).at("cached") == model_kernels);
}

TEST_CASE("a warm's workers are no use of the cache, and record no misses") {
  const FakeWarm warm;
  const TemporaryDirectory directory;
  const std::filesystem::path trace = directory.path() / "misses";
  const ScopedVariable traced("ATTNJIT_MISS_TRACE", trace.string());
  CHECK(warm.run().exit_code == 0);
  CHECK(!std::filesystem::exists(trace));
}

TEST_CASE("the progress of a warm as JSON is one event per line from begin to end") {
  const FakeWarm warm("crash:combine_splits");
  const CommandOutput output = warm.run("-j 2 --progress json");
  CHECK(output.exit_code == 1);
  std::istringstream lines(output.err);
  std::vector<std::string> events;
  std::size_t finished = 0;
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line);
    CHECK(event.at("schema") == 1);
    events.push_back(event.at("event"));
    if (events.back() == "finish") {
      CHECK(event.at("done") == ++finished);
      CHECK(event.at("total") == model_kernels);
      CHECK(event.contains("problem") == (event.at("state") == "crashed"));
    }
  }
  // Kernels that share a lock are postponed, and start twice.
  const auto postponed = std::count(events.begin(), events.end(), "postpone");
  REQUIRE(events.size() == 2 + 2 * (model_kernels + static_cast<std::size_t>(postponed)));
  CHECK(events.front() == "begin");
  CHECK(events.back() == "end");
}

TEST_CASE("descriptors of any operation are warmed, several at once and beside models") {
  const FakeWarm warm;
  const TemporaryDirectory directory;
  const std::string file =
      directory.write("prefill.json", R"({"operation":"prefill_kvcache","max_seqlen_q":0})");
  const CommandOutput output =
      run_attnjit(fmt::format(R"(warm --arch sm_90a '{{"operation":"merge_states"}}' '{}' '{}' )"
                              R"(llama-3.1-8b --cache-dir '{}' --nvrtc '{}' --json)",
                              file, R"({"operation":"append_kv_cache"})", warm.cache().string(),
                              ATTNJIT_FAKE_NVRTC_DIRECTORY));
  INFO(output.err << output.out);
  CHECK(output.exit_code == 0);
  const json document = json::parse(output.out);
  CHECK(document.at("what").size() == 4);
  std::set<std::string> callers;
  for (const json& kernel : document.at("kernels")) {
    for (const json& use : kernel.at("uses")) {
      callers.insert(use.contains("operation") ? use.at("operation") : use.at("model"));
    }
  }
  CHECK(callers == std::set<std::string>{"append_kv_cache", "llama-3.1-8b", "merge_states",
                                         "prefill_kvcache"});
}

}  // namespace attnjit
