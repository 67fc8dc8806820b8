// `attnjit warm` with a compiler: what it leaves in the cache, whatever happens meanwhile.
#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "child_command.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string model = "deepseek-v3 --tp 8 --phases decode --arch sm_90a";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string in_cache(const fs::path& cache) {
  return " --cache-dir '" + cache.string() + "'";
}

json warm_as_json(const fs::path& cache, const std::string& arguments) {
  const CommandOutput output = run_attnjit("warm " + arguments + in_cache(cache) + " --json");
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  return json::parse(output.out);
}

std::set<std::string> keys_of(const json& document) {
  std::set<std::string> keys;
  for (const json& kernel : document.at("kernels")) {
    keys.insert(kernel.at("key").get<std::string>());
  }
  return keys;
}

// Every entry reads back whole, and a warm of the same kernels finds each.
void check_cache(const fs::path& cache, const std::string& arguments, std::size_t num_kernels) {
  for (const StoredEntry& entry : DiskCache(cache, nullptr).list()) {
    CHECK(read_entry(entry.path).entry.has_value());
  }
  const json document = warm_as_json(cache, arguments);
  CHECK(document.at("counts").at("cached") == num_kernels);
}

// A copy of the templates, one of them with `text` at its end.
class AlteredTemplates {
 public:
  explicit AlteredTemplates(const std::string& text) {
    fs::copy(ATTNJIT_TEMPLATES_DIRECTORY, directory_.path(), fs::copy_options::recursive);
    std::ofstream(directory_.path() / "kernels/combine_splits.cu", std::ios::app) << text;
  }

  std::string option() const { return " --templates '" + directory_.path().string() + "'"; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a second warm compiles nothing and says so") {
  const TemporaryDirectory cache;
  const std::string command = "warm " + model + in_cache(cache.path());
  const CommandOutput first = run_attnjit(command);
  CHECK(first.exit_code == 0);
  CHECK(holds(first.out, "3 kernels: 3 compiled in "));
  CHECK(holds(first.out, "registers"));
  CHECK(holds(first.err, "[3/3] "));
  CHECK(!holds(first.out, "[3/3]"));
  const CommandOutput second = run_attnjit(command);
  CHECK(second.exit_code == 0);
  CHECK(holds(second.out, "nothing to compile: all 3 kernels are cached\n"));
  CHECK(holds(second.out, "  cached  "));
}

TEST_CASE("what is cached is served without NVRTC and on another card of the architecture") {
  const TemporaryDirectory cache;
  warm_as_json(cache.path(), model);
  const json without = warm_as_json(cache.path(), model + " --nvrtc ./no/such/file");
  CHECK(without.at("counts").at("cached") == 3);
  const json card =
      warm_as_json(cache.path(), "deepseek-v3 --tp 8 --phases decode --device-preset h100");
  CHECK(card.at("counts").at("cached") == 3);
}

TEST_CASE("a warm as JSON holds what the table shows") {
  const TemporaryDirectory cache;
  const json document = warm_as_json(cache.path(), model);
  CHECK(document.at("schema") == 1);
  CHECK(document.at("command") == "warm");
  CHECK(document.at("model") == "deepseek-v3");
  CHECK(document.at("cache_directory") == cache.path().string());
  CHECK(document.at("counts").at("compiled") == 3);
  CHECK(document.at("interrupted") == false);
  CHECK(document.at("exit_code") == 0);
  REQUIRE(document.at("kernels").size() == 3);
  for (const json& kernel : document.at("kernels")) {
    CHECK(kernel.at("state") == "compiled");
    CHECK(kernel.at("miss") == "absent");
    CHECK(kernel.at("arch") == "sm_90a");
    CHECK(kernel.at("registers").get<int>() > 0);
    CHECK(kernel.at("spill_store_bytes") == 0);
    CHECK(kernel.at("cubin_bytes").get<int>() > 0);
    CHECK(kernel.at("compile_milliseconds").get<double>() > 0);
    CHECK(kernel.at("key").get<std::string>().size() == 32);
    CHECK(kernel.at("uses").at(0).at("layers").size() == 61);
  }
  CHECK(document.at("kernels").at(0).at("role") == "attention");
}

TEST_CASE("a model with the kernels of another finds them cached") {
  const TemporaryDirectory cache;
  warm_as_json(cache.path(), model);
  const json other = warm_as_json(cache.path(), "deepseek-r1 --tp 8 --phases decode --arch sm_90a");
  CHECK(other.at("counts").at("cached") == 3);
}

TEST_CASE("shards fill one cache together") {
  const TemporaryDirectory cache;
  CHECK(warm_as_json(cache.path(), model + " --shard 0/2").at("counts").at("compiled") == 2);
  CHECK(warm_as_json(cache.path(), model + " --shard 1/2").at("counts").at("compiled") == 1);
  CHECK(warm_as_json(cache.path(), model + " --shard 7/8").at("kernels").empty());
  check_cache(cache.path(), model, 3);
}

TEST_CASE("force compiles what is cached into the same keys") {
  const TemporaryDirectory cache;
  const json first = warm_as_json(cache.path(), model);
  const json forced = warm_as_json(cache.path(), model + " --force");
  CHECK(forced.at("counts").at("compiled") == 3);
  CHECK(keys_of(forced) == keys_of(first));
  check_cache(cache.path(), model, 3);
}

TEST_CASE("a damaged entry is compiled again and the reason told") {
  const TemporaryDirectory cache;
  const json first = warm_as_json(cache.path(), model);
  for (const StoredEntry& entry : DiskCache(cache.path(), nullptr).list()) {
    if (entry.digest == first.at("kernels").at(0).at("key").get<std::string>()) {
      fs::resize_file(entry.path, entry.bytes / 2);
    }
  }
  const json repaired = warm_as_json(cache.path(), model);
  CHECK(repaired.at("counts").at("compiled") == 1);
  CHECK(repaired.at("kernels").at(0).at("miss") == "corrupt");
  check_cache(cache.path(), model, 3);
}

TEST_CASE("a cache directory that cannot be made ends warming at the first kernel with 1") {
  const TemporaryDirectory directory;
  const fs::path file = directory.write("file", "no directory");
  const CommandOutput output = run_attnjit("warm " + model + " -j 1" + in_cache(file / "cache"));
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, file.string()));
  CHECK(holds(output.err, "Not a directory"));
  CHECK(holds(output.err, "--cache-dir"));
  CHECK(holds(output.out, "3 kernels: 1 failed, 2 not reached"));
}

TEST_CASE("templates from a directory have keys of their own") {
  const TemporaryDirectory cache;
  const std::set<std::string> built_in = keys_of(warm_as_json(cache.path(), model));
  const AlteredTemplates same("");
  CHECK(keys_of(warm_as_json(cache.path(), model + same.option())) == built_in);
  const AlteredTemplates altered("// one more line\n");
  for (const std::string& key : keys_of(warm_as_json(cache.path(), model + altered.option()))) {
    CHECK(!built_in.contains(key));
  }
}

TEST_CASE("the source under a key is the one that was compiled though the templates changed") {
  const TemporaryDirectory cache;
  const AlteredTemplates altered("// only of this compile\n");
  const json document = warm_as_json(cache.path(), model + altered.option());
  const std::string key = document.at("kernels").at(1).at("key");
  const CommandOutput source = run_attnjit("src " + key.substr(0, 12) + in_cache(cache.path()));
  CHECK(source.exit_code == 0);
  CHECK(holds(source.out, "// only of this compile\n"));
  const CommandOutput built_in =
      run_attnjit("src deepseek-v3 --tp 8 --arch sm_90a --kernel combine");
  CHECK(!holds(built_in.out, "// only of this compile\n"));
}

TEST_CASE("a kernel that does not compile ends with 1 and the others are warmed") {
  const TemporaryDirectory cache;
  const AlteredTemplates broken("#error this template is broken\n");
  const CommandOutput output =
      run_attnjit("warm " + model + broken.option() + in_cache(cache.path()));
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, "this template is broken"));
  CHECK(holds(output.err, "does not compile"));
  CHECK(holds(output.out, "1 failed"));
  CHECK(holds(output.out, "3 kernels: 2 compiled in "));
}

TEST_CASE("two processes that warm one directory at once leave a whole cache") {
  const TemporaryDirectory cache;
  const std::vector<std::string> arguments = {
      "warm",   "deepseek-v3", "--tp",   "8",           "--phases",
      "decode", "--arch",      "sm_90a", "--cache-dir", cache.path().string()};
  const pid_t one = start_attnjit(arguments);
  const pid_t other = start_attnjit(arguments);
  CHECK(wait_for_attnjit(one) == 0);
  CHECK(wait_for_attnjit(other) == 0);
  check_cache(cache.path(), model, 3);
}

TEST_CASE("a warm that is killed or interrupted leaves a cache that the next one completes") {
  const std::string archs = "sm_80,sm_90a,sm_120";
  const TemporaryDirectory cache;
  // SIGKILL last: the workers that it leaves may still publish a kernel, which would be taken for
  // one of the next warm, not yet ready for its signal.
  for (const auto& [signal, expected_end] :
       {std::pair{SIGINT, 130}, std::pair{SIGKILL, -SIGKILL}}) {
    INFO("signal " << signal);
    const std::size_t before = DiskCache(cache.path(), nullptr).list().size();
    const pid_t child = start_attnjit({"warm", "deepseek-v3", "--tp", "8", "--phases", "decode",
                                       "--arch", archs, "--cache-dir", cache.path().string()});
    CHECK(wait_until([&] { return DiskCache(cache.path(), nullptr).list().size() > before; }));
    kill(child, signal);
    CHECK(wait_for_attnjit(child) == expected_end);
  }
  const std::string command = "deepseek-v3 --tp 8 --phases decode --arch " + archs;
  const json completed = warm_as_json(cache.path(), command);
  CHECK(completed.at("counts").at("cached").get<int>() >= 2);
  CHECK(completed.at("counts").at("compiled").get<int>() >= 1);
  check_cache(cache.path(), command, 9);
}

}  // namespace attnjit
