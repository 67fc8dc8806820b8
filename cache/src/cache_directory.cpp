// Where the cache lives: the search of resolve_cache_directory.
#include <cstdlib>
#include <system_error>
#include <vector>

#include <pwd.h>
#include <unistd.h>

#include "attnjit/cache_options.hpp"

namespace attnjit {
namespace {

std::filesystem::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

// Fixed now, so that a later chdir does not move the cache; none if there is no current directory.
std::optional<std::filesystem::path> from_current_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    return std::nullopt;
  }
  return absolute;
}

// The home directory of the user database; empty where the user has no entry, as in a container
// with an arbitrary user id.
std::filesystem::path account_home() {
  constexpr std::size_t longest_record_bytes = 16384;
  std::vector<char> record(longest_record_bytes);
  passwd account = {};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &account, record.data(), record.size(), &found) != 0 ||
      found == nullptr || found->pw_dir == nullptr) {
    return {};
  }
  return found->pw_dir;
}

}  // namespace

std::optional<std::filesystem::path> resolve_cache_directory(const std::filesystem::path& option) {
  if (!option.empty()) {
    return from_current_directory(option);
  }
  if (const auto directory = environment_path("ATTNJIT_CACHE_DIR"); !directory.empty()) {
    return from_current_directory(directory);
  }
  if (const auto xdg = environment_path("XDG_CACHE_HOME"); xdg.is_absolute()) {
    return xdg / "attnjit";
  }
  if (const auto home = environment_path("HOME"); home.is_absolute()) {
    return home / ".cache" / "attnjit";
  }
  if (const auto home = account_home(); home.is_absolute()) {
    return home / ".cache" / "attnjit";
  }
  return std::nullopt;
}

}  // namespace attnjit
