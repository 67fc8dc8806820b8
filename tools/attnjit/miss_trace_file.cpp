#include "miss_trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/kernel_config_json.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

// "sm_90a": what a compiler's option is made of.
bool is_arch(std::string_view arch) {
  const std::string_view digits = arch.substr(0, arch.find_last_of("0123456789") + 1);
  const bool has_suffix =
      arch == digits || arch.substr(digits.size()) == "a" || arch.substr(digits.size()) == "f";
  return digits.starts_with("sm_") && digits.size() > 3 && digits.size() < 8 && has_suffix &&
         digits.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// Throws nlohmann::json::exception and ConfigJsonError.
KernelJob parse_miss(std::string_view line) {
  const auto json = nlohmann::ordered_json::parse(line);
  if (json.at("schema") != 1) {
    throw ConfigJsonError(
        fmt::format("schema = {}: must be 1; fix: read it with the version of "
                    "attnjit that wrote it",
                    shown_text(json["schema"].dump())));
  }
  KernelJob job{.config = kernel_config_from_json(json.at("config").dump()),
                .target = {},
                .uses = {},
                .traced_key = json.at("key")};
  job.target.arch = json.at("arch");
  if (!is_arch(job.target.arch)) {
    throw ConfigJsonError(
        fmt::format("arch = {}: must be a target such as sm_90a", shown_text(job.target.arch)));
  }
  if (json.at("toolchain").get<std::string>().empty()) {
    job.traced_key.clear();  // formed without a toolchain: nothing is ever stored under it
  }
  return job;
}

void add_job(std::vector<KernelJob>& jobs, KernelJob job) {
  const bool known = std::any_of(jobs.begin(), jobs.end(), [&](const KernelJob& other) {
    return other.target.arch == job.target.arch && other.config == job.config;
  });
  if (!known) {
    jobs.push_back(std::move(job));
  }
}

[[noreturn]] void throw_unreadable(const std::filesystem::path& file, int error_number) {
  throw UsageError(
      fmt::format("--from-trace = {}: cannot be read: {}; fix: name the file that "
                  "ATTNJIT_MISS_TRACE named for the run",
                  shown_text(file.string()), std::generic_category().message(error_number)));
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw_unreadable(file, EISDIR);
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open()) {
    throw_unreadable(file, errno != 0 ? errno : EIO);
  }
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return text;
}

}  // namespace

MissTraceFile read_miss_trace_text(std::string_view text, std::string_view name) {
  MissTraceFile trace;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) {
      continue;
    }
    const auto leave_out = [&](const char* why) {
      trace.unread.push_back(fmt::format("{}:{}: {}", shown_text(name), number, shown_text(why)));
    };
    try {
      add_job(trace.jobs, parse_miss(line));
    } catch (const nlohmann::json::exception& error) {
      leave_out(error.what());
    } catch (const ConfigJsonError& error) {
      leave_out(error.what());
    }
  }
  return trace;
}

MissTraceFile read_miss_trace(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  MissTraceFile trace = read_miss_trace_text(text, file.string());
  if (trace.jobs.empty() && !trace.unread.empty()) {
    throw UsageError(fmt::format("--from-trace = {}: holds no miss; {}", shown_text(file.string()),
                                 trace.unread.front()));
  }
  return trace;
}

}  // namespace attnjit
