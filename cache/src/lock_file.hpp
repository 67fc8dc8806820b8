// The lock of a file, by flock: it belongs to the open file, so threads exclude each other as
// processes do, and the kernel drops it when its holder dies. Private; thread-safe.
#pragma once

#include <filesystem>

#include "attnjit/key_lock.hpp"
#include "file_modes.hpp"

namespace attnjit {

// Makes `path` and its directory if they are not there, and never removes it: a lock on a file that
// is being removed would exclude nobody.
KeyLock lock_file(const std::filesystem::path& path, FileModes modes, const LockPatience& patience);

}  // namespace attnjit
