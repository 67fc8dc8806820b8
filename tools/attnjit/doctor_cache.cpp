#include "doctor_cache.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <sys/vfs.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr double mib = 1024.0 * 1024.0;
constexpr std::uint64_t least_free_bytes = std::uint64_t{64} * 1024 * 1024;  // some hundred kernels

struct FileSystemKind {
  std::uint32_t magic;  // statfs(2)
  const char* name;
  bool is_network;
};

constexpr std::array<FileSystemKind, 12> file_system_kinds = {{
    {0xEF53, "ext4", false},
    {0x58465342, "xfs", false},
    {0x9123683E, "btrfs", false},
    {0x2FC12FC1, "zfs", false},
    {0x01021994, "tmpfs", false},
    {0x794C7630, "overlayfs", false},
    {0x65735546, "FUSE", false},
    {0x6969, "NFS", true},
    {0xFF534D42, "CIFS", true},
    {0xFE534D42, "SMB", true},
    {0x0BD00BD0, "Lustre", true},
    {0x47504653, "GPFS", true},
}};

FileSystemKind kind_of(std::uint32_t magic) {
  for (const FileSystemKind& kind : file_system_kinds) {
    if (kind.magic == magic) {
      return kind;
    }
  }
  return {magic, "another file system", false};
}

// The directory itself or, before the first put, the nearest one above it that exists.
fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

std::string describe_entries(const fs::path& directory) {
  std::uint64_t bytes = 0;
  const DiskCache cache(directory, {});
  const std::vector<PlacedEntry> entries = list_entry_places(cache);
  for (const PlacedEntry& entry : entries) {
    bytes += entry.stored.bytes;
  }
  return fmt::format("{}: {} entries, {:.1f} MiB", directory.string(), entries.size(),
                     static_cast<double>(bytes) / mib);
}

}  // namespace

Finding examine_cache(const std::optional<fs::path>& directory) {
  if (!directory) {
    return {"cache", Verdict::problem,
            "no directory: kernels are compiled again in every process; set ATTNJIT_CACHE_DIR"};
  }
  const fs::path existing = nearest_existing(*directory);
  struct statfs file_system {};
  if (statfs(existing.c_str(), &file_system) != 0 || !fs::is_directory(existing) ||
      access(existing.c_str(), W_OK | X_OK) != 0) {
    return {"cache", Verdict::problem,
            fmt::format("{}: {} is no directory that this user can write to; set ATTNJIT_CACHE_DIR",
                        directory->string(), existing.string())};
  }
  const FileSystemKind kind = kind_of(static_cast<std::uint32_t>(file_system.f_type));
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(file_system.f_bavail) *
                                   static_cast<std::uint64_t>(file_system.f_bsize);
  const std::string text = fmt::format("{}; {}, {:.0f} MiB free", describe_entries(*directory),
                                       kind.name, static_cast<double>(free_bytes) / mib);
  if (free_bytes < least_free_bytes) {
    return {"cache", Verdict::problem, text + ": too little room for new kernels"};
  }
  if (kind.is_network) {
    return {"cache", Verdict::note, text + ": a directory on this machine would be quicker"};
  }
  return {"cache", Verdict::good, text};
}

}  // namespace attnjit
