#include "quarantine.hpp"

#include <string>
#include <system_error>

#include <unistd.h>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr int most_per_shard = 2;

int count_quarantined(const fs::path& shard) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator file(shard, error), end; !error && file != end;
       file.increment(error)) {
    count += file->path().filename().string().ends_with(quarantine_suffix) ? 1 : 0;
  }
  return count;
}

}  // namespace

bool move_to_quarantine(const fs::path& path, const struct stat& status) {
  // Another process may have put a good one meanwhile. If it does so between here and the rename,
  // its entry is lost: a compile, no error.
  struct stat now = {};
  if (::lstat(path.c_str(), &now) != 0 || now.st_ino != status.st_ino ||
      now.st_dev != status.st_dev || now.st_size != status.st_size) {
    return false;
  }
  const std::string aside = path.string() + std::string(quarantine_suffix);
  if (::access(aside.c_str(), F_OK) != 0 &&
      count_quarantined(path.parent_path()) >= most_per_shard) {
    return ::unlink(path.c_str()) == 0;
  }
  return ::rename(path.c_str(), aside.c_str()) == 0;
}

}  // namespace attnjit
