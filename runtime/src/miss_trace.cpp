#include "miss_trace.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace attnjit {
namespace {

std::string error_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

std::string miss_trace_line(const MissEvent& miss, std::string_view toolchain) {
  using Json = nlohmann::ordered_json;
  Json config = Json::parse(miss.kernel.config, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || config.empty()) {
    return "";
  }
  const Json line = {{"schema", 1},
                     {"config", std::move(config)},
                     {"arch", miss.kernel.arch},
                     {"key", miss.key.digest},
                     {"toolchain", toolchain},
                     {"reason", to_string(miss.reason)},
                     {"detail", miss.detail}};
  // Paths need not be UTF-8.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

MissTrace::MissTrace(std::filesystem::path file, std::function<void(std::string_view)> warn)
    : file_(std::move(file)), warn_(std::move(warn)) {}

MissTrace::~MissTrace() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

void MissTrace::record(const MissEvent& miss, std::string_view toolchain) {
  if (!is_recording()) {
    return;
  }
  std::string line = miss_trace_line(miss, toolchain);
  const std::lock_guard lock(mutex_);
  if (line.empty() || !open_file()) {
    return;
  }
  if (is_torn_) {
    line.insert(0, "\n");
  }
  ssize_t written = 0;
  do {
    written = write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) {
    warn_once(error_text(errno));
  } else {
    is_torn_ = static_cast<std::size_t>(written) < line.size();
    if (is_torn_) {
      warn_once("only a part of a line could be written");
    }
  }
}

bool MissTrace::open_file() {
  if (descriptor_ >= 0) {
    return true;
  }
  constexpr mode_t for_owner = 0600;
  // O_NONBLOCK: a FIFO without a reader fails instead of keeping the caller.
  const int descriptor = open(
      file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, for_owner);
  if (descriptor < 0) {
    warn_once(error_text(errno));
    return false;
  }
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    warn_once("not a regular file");
    return false;
  }
  descriptor_ = descriptor;
  return true;
}

void MissTrace::warn_once(std::string_view problem) {
  if (!std::exchange(has_warned_, true)) {
    warn_("cache misses are not recorded (" + file_.string() + ": " + std::string(problem) + ")");
  }
}

}  // namespace attnjit
