// The modes of what a cache makes on disk, whatever the umask. Private; pure.
#pragma once

#include <sys/types.h>

#include "attnjit/cache_options.hpp"

namespace attnjit {

struct FileModes {
  mode_t directory = 0700;
  mode_t file = 0600;
};

// A group's directories have the set-group-id bit, so that what is made in them is the group's.
constexpr FileModes file_modes(CacheSharing sharing) {
  return sharing == CacheSharing::group ? FileModes{.directory = 02770, .file = 0660} : FileModes{};
}

}  // namespace attnjit
