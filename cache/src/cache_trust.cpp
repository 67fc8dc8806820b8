#include "cache_trust.hpp"

#include <unistd.h>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ways_out =
    ", or name another directory with ATTNJIT_CACHE_DIR, or set ATTNJIT_CACHE_SHARED=1 if it is "
    "shared on purpose";

TrustVerdict refuse(const fs::path& path, const std::string& problem, std::string_view fix) {
  return {Trust::refused,
          path.string() + ": " + problem + "; fix: " + std::string(fix) + std::string(ways_out)};
}

// Root can do all that a user can.
bool is_trusted_owner(uid_t owner) {
  return owner == ::geteuid() || owner == 0;
}

std::string name_of_owner(uid_t owner) {
  return "belongs to user " + std::to_string(owner) + ", not to user " +
         std::to_string(::geteuid());
}

bool anybody_can_replace(const struct stat& parent) {
  return (parent.st_mode & S_IWOTH) != 0 && (parent.st_mode & S_ISVTX) == 0;
}

}  // namespace

TrustVerdict judge_own_directory(const fs::path& directory) {
  struct stat link = {};
  struct stat status = {};
  struct stat parent = {};
  if (::lstat(directory.c_str(), &link) != 0 || ::stat(directory.c_str(), &status) != 0 ||
      !S_ISDIR(status.st_mode)) {
    return {};
  }
  if (!is_trusted_owner(link.st_uid)) {
    return refuse(directory, name_of_owner(link.st_uid), "chown it");
  }
  if (!is_trusted_owner(status.st_uid)) {
    return refuse(directory, "leads to a directory that " + name_of_owner(status.st_uid),
                  "chown that");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refuse(directory, "others can write it", "chmod go-w it");
  }
  const fs::path above = directory.has_parent_path() ? directory.parent_path() : fs::path(".");
  if (::stat(above.c_str(), &parent) == 0 && anybody_can_replace(parent)) {
    return refuse(above, "everybody can write it, and so replace the cache in it", "chmod o-w it");
  }
  return {Trust::trusted, ""};
}

TrustVerdict judge_layer(const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) {
    return {Trust::refused, "everybody can write it; fix: chmod o-w it"};
  }
  return {Trust::trusted, ""};
}

}  // namespace attnjit
