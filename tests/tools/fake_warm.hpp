// `attnjit warm` of one model into a cache of its own, with the compiler of fake_nvrtc.cpp.
#pragma once

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "../cache/scratch_directory.hpp"
#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit::test {

constexpr std::size_t model_kernels = 5;

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A cache of its own, a log of compiles, and what befalls them.
class FakeWarm {
 public:
  explicit FakeWarm(const std::string& fates = "", int milliseconds = 0)
      : fates_("ATTNJIT_FAKE_NVRTC", fates),
        milliseconds_("ATTNJIT_FAKE_NVRTC_MS", std::to_string(milliseconds)),
        log_("ATTNJIT_FAKE_NVRTC_LOG", log_path().string()) {}

  std::filesystem::path cache() const { return directory_.path() / "cache"; }

  std::vector<std::string> words(const std::string& options = "") const {
    std::vector<std::string> all = {"warm", "deepseek-v3", "--tp", "8", "--arch", "sm_90a"};
    all.insert(all.end(),
               {"--cache-dir", cache().string(), "--nvrtc", ATTNJIT_FAKE_NVRTC_DIRECTORY});
    std::istringstream more(options);
    for (std::string word; more >> word;) {
      all.push_back(word);
    }
    return all;
  }

  // `options` go through the shell.
  CommandOutput run(const std::string& options = "") const {
    std::string line;
    for (const std::string& word : words()) {
      line += "'" + word + "' ";
    }
    return run_attnjit(line + options);
  }

  // Its exit code, or minus the signal that ended it.
  int run_in_shell(const std::string& before, const std::string& options,
                   const std::string& redirections) const {
    std::string line = before + "'" + ATTNJIT_COMMAND + "'";
    for (const std::string& word : words(options)) {
      line += " '" + word + "'";
    }
    const int status = std::system((line + " " + redirections).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // "<process> <template>" of every compile.
  std::vector<std::string> compiles() const {
    std::ifstream file(log_path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  // No worker that compiled anything lives.
  bool all_workers_ended() const {
    for (const std::string& line : compiles()) {
      if (kill(static_cast<pid_t>(std::stol(line)), 0) == 0) {
        return false;
      }
    }
    return true;
  }

 private:
  std::filesystem::path log_path() const { return directory_.path() / "log"; }

  TemporaryDirectory directory_;
  ScopedVariable fates_;
  ScopedVariable milliseconds_;
  ScopedVariable log_;
};

inline nlohmann::json counts_of(const CommandOutput& output) {
  INFO(output.err);
  REQUIRE(!output.out.empty());
  return nlohmann::json::parse(output.out).at("counts");
}

// Every entry reads back whole, and a warm without fates completes the cache.
inline void check_completes(const FakeWarm& warm) {
  for (const StoredEntry& entry : DiskCache(warm.cache(), nullptr).list()) {
    CHECK(read_entry(entry.path).entry.has_value());
  }
  const ScopedVariable no_fates("ATTNJIT_FAKE_NVRTC", "");
  const ScopedVariable no_delay("ATTNJIT_FAKE_NVRTC_MS", "0");
  const CommandOutput output = warm.run("--json");
  CHECK(output.exit_code == 0);
  const nlohmann::json counts = counts_of(output);
  CHECK(counts.at("compiled").get<std::size_t>() + counts.at("cached").get<std::size_t>() ==
        model_kernels);
  CHECK(counts_of(warm.run("--json")).at("cached") == model_kernels);
}

}  // namespace attnjit::test
