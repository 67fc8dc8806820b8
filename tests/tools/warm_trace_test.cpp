// Property 11: what a run missed is recorded, and warmed from the record under the same keys. The
// driver is the mock of tests/runtime, the compiler fake_nvrtc.cpp.
#include <sys/stat.h>

#include <cuda.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../cache/scratch_directory.hpp"
#include "../ragged_prefill.hpp"
#include "../runtime/mock_driver.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_config_json.hpp"
#include "catch.hpp"
#include "command_line.hpp"
#include "miss_trace_file.hpp"

namespace attnjit {
namespace {

using nlohmann::json;
using test::ScopedVariable;

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

void be_an_h200() {
  auto& attributes = test::fresh_mock_driver().attributes;
  attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
  attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132;
  attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 227 * 1024;
  attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 228 * 1024;
  attributes[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 50 << 20;
}

// What an application does: prepares a decode, twice, and a prefill. Returns its misses.
int run_application(const fs::path& cache, const fs::path& trace, std::string* warning = nullptr) {
  const ScopedVariable driver("ATTNJIT_LIBCUDA", test::mock_driver_path);
  be_an_h200();
  int misses = 0;
  KernelProviderOptions options;
  options.cache_directory = cache;
  options.nvrtc = ATTNJIT_FAKE_NVRTC_DIRECTORY;
  options.on_miss = [&](const MissEvent&) { ++misses; };
  options.warn = [&](std::string_view text) {
    if (warning != nullptr) {
      *warning += text;
    }
  };
  options.miss_trace = trace;
  AttentionRuntime runtime(options);
  AttentionDescriptor decode;
  runtime.prepare_decode(decode, 0);
  decode.page_size = 32;
  runtime.prepare_decode(decode, 0);
  AttentionDescriptor prefill;
  prefill.operation = Operation::prefill_kvcache;
  prefill.max_seqlen_q = 0;
  runtime.prepare_prefill(prefill, 0);
  return misses;
}

CommandOutput warm(const std::string& arguments, const fs::path& cache) {
  return run_attnjit(fmt::format("warm {} --cache-dir '{}' --nvrtc '{}' --json", arguments,
                                 cache.string(), ATTNJIT_FAKE_NVRTC_DIRECTORY));
}

std::string from_trace(const fs::path& trace) {
  return "--from-trace '" + trace.string() + "'";
}

}  // namespace

TEST_CASE("warm = run: a run after a warm from its trace misses nothing, under byte-equal keys") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  const int missed = run_application(directory.path() / "first", trace);
  CHECK(missed >= 5);
  std::set<std::string> traced;
  for (const std::string& line : lines_of(trace)) {
    traced.insert(json::parse(line).at("key").get<std::string>());
  }
  CHECK(traced.size() == static_cast<std::size_t>(missed));

  const fs::path other = directory.path() / "second";
  const CommandOutput output = warm(from_trace(trace), other);
  INFO(output.err);
  CHECK(output.exit_code == 0);
  const json document = json::parse(output.out);
  CHECK(document.at("counts").at("compiled") == missed);
  std::set<std::string> warmed;
  for (const json& kernel : document.at("kernels")) {
    warmed.insert(kernel.at("key").get<std::string>());
    CHECK(kernel.at("key") == kernel.at("traced_key"));
  }
  CHECK(warmed == traced);
  CHECK(run_application(other, trace) == 0);
}

TEST_CASE("misses of several runs in one trace are warmed once") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  const int missed = run_application(directory.path() / "one", trace);
  CHECK(run_application(directory.path() / "other", trace) == missed);
  CHECK(lines_of(trace).size() == static_cast<std::size_t>(2 * missed));
  CHECK(read_miss_trace(trace).jobs.size() == static_cast<std::size_t>(missed));
}

TEST_CASE("a trace that cannot be written is one warning, and the run goes on") {
  const TemporaryDirectory directory;
  const fs::path fifo = directory.path() / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  for (const fs::path& place :
       {fs::path("/dev/full"), directory.path() / "no/such/directory", directory.path(), fifo}) {
    INFO(place);
    std::string warning;
    const fs::path cache = directory.path() / ("cache" + place.filename().string());
    CHECK(run_application(cache, place, &warning) >= 5);
    CHECK(warning.starts_with("cache misses are not recorded (" + place.string() + ": "));
    CHECK(warning.find("recorded", warning.find("recorded") + 1) == std::string::npos);
  }
}

TEST_CASE("without an option the trace is what the environment names") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  const ScopedVariable variable("ATTNJIT_MISS_TRACE", trace.string());
  KernelProviderOptions options;
  options.cache_directory = directory.path() / "cache";
  options.nvrtc = ATTNJIT_FAKE_NVRTC_DIRECTORY;
  KernelProvider provider(options);
  TargetDevice target;
  target.arch = "sm_80";
  const MergeStatesConfig config{.dtype = DataType::bf16, .head_dim_v = 512, .num_threads = 128};
  provider.provide(config, target);
  REQUIRE(lines_of(trace).size() == 1);
  const MissTraceFile read = read_miss_trace(trace);
  CHECK(read.unread.empty());
  REQUIRE(read.jobs.size() == 1);
  CHECK(read.jobs[0].config == KernelConfig(config));
  CHECK(read.jobs[0].target.arch == "sm_80");
  CHECK(json::parse(lines_of(trace)[0]).at("reason") == "absent");
  struct stat status {};
  REQUIRE(stat(trace.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("lines of a trace that hold no miss are told by file and line, and the others read") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  const int missed = run_application(directory.path() / "cache", trace);
  const std::string whole = read_text(trace);
  const std::string first = whole.substr(0, whole.find('\n'));
  std::string other_schema = first;
  other_schema.replace(other_schema.find("\"schema\":1"), 10, "\"schema\":2");
  std::string other_arch = first;
  other_arch.replace(other_arch.find("\"sm_90a\""), 8, "\"sm_90; rm\"");
  const MissTraceFile read = read_miss_trace_text(
      whole + "\n" + first.substr(0, 100) + "\n" + other_schema + "\n{}\n" + other_arch + "\n[1]",
      "t");
  CHECK(read.jobs.size() == static_cast<std::size_t>(missed));
  REQUIRE(read.unread.size() == 5);
  for (std::size_t i = 0; i < read.unread.size(); ++i) {
    const auto line = static_cast<std::size_t>(missed) + 2 + i;
    CHECK(read.unread[i].starts_with(fmt::format("t:{}: ", line)));
  }
  CHECK(read.unread[1].find("schema = 2: must be 1") != std::string::npos);
  CHECK(read.unread[3].find("arch = ") != std::string::npos);
}

TEST_CASE("a member of a trace's line that is none is told by name, value, rule and fix") {
  const KernelConfig config =
      MergeStatesConfig{.dtype = DataType::bf16, .head_dim_v = 512, .num_threads = 128};
  const json good = {{"schema", 1},
                     {"config", json::parse(to_json(config))},
                     {"arch", "sm_80"},
                     {"key", std::string(32, 'a')},
                     {"toolchain", "nvrtc"}};
  CHECK(read_miss_trace_text(good.dump(), "t").jobs.size() == 1);
  const auto told = [](const json& line) {
    const MissTraceFile read = read_miss_trace_text(line.dump(), "t");
    REQUIRE(read.unread.size() == 1);
    CHECK(read.unread[0].starts_with("t:1: "));
    CHECK(read.unread[0].find("json.exception") == std::string::npos);
    CHECK(read.unread[0].find("; fix: ") != std::string::npos);
    return read.unread[0].substr(std::string("t:1: ").size());
  };
  for (const std::string name : {"schema", "config", "arch", "key", "toolchain"}) {
    for (const json& value : {json(2.5), json(nullptr), json({1, 2}), json(true)}) {
      json line = good;
      line[name] = value;
      CHECK(told(line).starts_with(name + " = " + value.dump() + ": must be "));
    }
    json line = good;
    line.erase(name);
    CHECK(told(line).starts_with(name + " is missing: must be "));
  }
  json line = good;
  line["key"] = std::string(5000, 'x');
  CHECK(told(line).size() < 300);
  line = good;
  line["config"]["num_threads"] = "many";
  CHECK(told(line).starts_with("num_threads = \"many\": must be an integer of at most 31 bits"));
  line["config"]["head_dim_v"] = "much";
  const std::string two = told(line);  // a message of some length comes whole
  CHECK(two.find("head_dim_v = \"much\"") != std::string::npos);
  CHECK(two.find("num_threads = \"many\"") != std::string::npos);
  CHECK(two.ends_with("without quotes or fraction"));
  CHECK(told(json(3)).starts_with("line = 3: must be one whole JSON object"));
  const std::string deep = good.dump().substr(0, good.dump().size() - 1) +
                           ",\"x\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  REQUIRE(read_miss_trace_text(deep, "t").unread.size() == 1);
}

TEST_CASE("a trace with a torn line is warmed and the line told; one without a miss is refused") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  const int missed = run_application(directory.path() / "cache", trace);
  std::ofstream(trace, std::ios::app) << "{\"schema\":1,\"conf";
  const CommandOutput output = warm(from_trace(trace), directory.path() / "second");
  CHECK(output.exit_code == 0);
  CHECK(json::parse(output.out).at("counts").at("compiled") == missed);
  CHECK(output.err.find(fmt::format("left out: {}:{}: ", trace.string(), missed + 1)) !=
        std::string::npos);
  const std::string text = directory.write("text", "no trace\n");
  for (const std::string& bad :
       {text, (directory.path() / "none").string(), directory.path().string()}) {
    const CommandOutput refused = warm(from_trace(bad), directory.path() / "second");
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.starts_with("attnjit: --from-trace = " + bad + ": "));
  }
}

TEST_CASE("a kernel under another key than in the trace is told") {
  const TemporaryDirectory directory;
  const fs::path trace = directory.path() / "misses.jsonl";
  run_application(directory.path() / "cache", trace);
  const ScopedVariable other("NVRTC_APPEND_FLAGS", "-lineinfo");
  const CommandOutput output = warm(from_trace(trace), directory.path() / "second");
  CHECK(output.exit_code == 0);
  CHECK(output.err.find("under another key than in the trace") != std::string::npos);
}

}  // namespace attnjit
