// The lock of a file, by flock: it belongs to the open file, so threads exclude each other as
// processes do, and the kernel drops it when its holder dies. Private; thread-safe.
#pragma once

#include <filesystem>

#include "attnjit/key_lock.hpp"

namespace attnjit {

// Makes `path` if it is not there, mode 0600, and never removes it: a lock on a file that is being
// removed would exclude nobody.
KeyLock lock_file(const std::filesystem::path& path, const LockPatience& patience);

}  // namespace attnjit
