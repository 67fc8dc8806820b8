#include "miss_trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "attnjit/kernel_config_json.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "json_fields.hpp"

namespace attnjit {
namespace {

constexpr std::size_t most_reason_bytes = 1000;

// "sm_90a": what a compiler's option is made of.
bool is_arch(std::string_view arch) {
  const std::string_view digits = arch.substr(0, arch.find_last_of("0123456789") + 1);
  const bool has_suffix =
      arch == digits || arch.substr(digits.size()) == "a" || arch.substr(digits.size()) == "f";
  return digits.starts_with("sm_") && digits.size() > 3 && digits.size() < 8 && has_suffix &&
         digits.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// Throws JsonFieldError and ConfigJsonError.
KernelJob parse_miss(std::string_view line) {
  const auto json = parse_shallow_json(line);
  const std::string fix = "leave the line out, or let ATTNJIT_MISS_TRACE write the trace anew";
  if (!json.is_object()) {
    throw JsonFieldError(fmt::format("line = {}: must be one whole JSON object, a miss; fix: {}",
                                     shown_text(line), fix));
  }
  const JsonObject miss{json, "", fix};
  if (!json.contains("schema") || json["schema"] != 1) {
    refuse_field({json, "", "read the line with the version of attnjit that wrote it"}, "schema",
                 "must be 1");
  }
  KernelJob job{.config = kernel_config_from_json(
                    object_field(miss, "config", "the config of a kernel").dump()),
                .target = {},
                .uses = {},
                .traced_key = key_field(miss, "key")};
  job.target.arch = text_field(miss, "arch", "a target such as sm_90a");
  if (!is_arch(job.target.arch)) {
    refuse_field(miss, "arch", "must be a target such as sm_90a");
  }
  if (text_field(miss, "toolchain", "what the compiler says of itself").empty()) {
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
    // Values in messages are short; of many fields only the first are told.
    const auto leave_out = [&](const char* why) {
      trace.unread.push_back(
          fmt::format("{}:{}: {}", shown_text(name), number, shown_text(why, most_reason_bytes)));
    };
    try {
      add_job(trace.jobs, parse_miss(line));
    } catch (const JsonFieldError& error) {
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
