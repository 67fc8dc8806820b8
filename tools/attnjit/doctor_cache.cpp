#include "doctor_cache.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <sys/vfs.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"

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

std::string describe_entries(const fs::path& place, const std::vector<StoredEntry>& entries) {
  std::uint64_t bytes = 0;
  for (const StoredEntry& entry : entries) {
    bytes += entry.bytes;
  }
  return fmt::format("{}: {} entries, {:.1f} MiB", place.string(), entries.size(),
                     static_cast<double>(bytes) / mib);
}

std::string describe_trust(const CacheOptions& options) {
  if (options.sharing == CacheSharing::group) {
    return "shared by ATTNJIT_CACHE_SHARED=1: whoever can write it is trusted";
  }
  std::error_code ignored;
  return fs::exists(*options.directory, ignored) ? "trusted: nobody else can write it"
                                                 : "to be made by the first kernel";
}

Finding examine_layer(const CacheLayer& layer) {
  const LayerState state = layer.state();
  const std::string text =
      fmt::format("{}, a {}", describe_entries(layer.path(), layer.list()), to_string(state.kind));
  if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
    return {"layer", Verdict::problem,
            fmt::format("{}: left out, {}", layer.path().string(), state.problem)};
  }
  if (state.file_bytes != state.expected_bytes) {
    return {"layer", Verdict::problem,
            fmt::format("{} of {} bytes where its index says {}: cut off or changed; copy it again",
                        text, state.file_bytes, state.expected_bytes)};
  }
  return {"layer", Verdict::good, text + "; trusted: not everybody can write it"};
}

Finding examine_directory(const DiskCache& cache) {
  const std::optional<fs::path>& directory = cache.directory();
  if (!directory) {
    return {"cache", Verdict::problem,
            "no directory: kernels are compiled again in every process; set ATTNJIT_CACHE_DIR"};
  }
  if (const std::string problem = cache.trust_problem(); !problem.empty()) {
    return {"cache", Verdict::problem, "not trusted, so not used: " + problem};
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
  const std::string text = fmt::format(
      "{}; {}; {}, {:.0f} MiB free", describe_entries(*directory, cache.list()),
      describe_trust(cache.options()), kind.name, static_cast<double>(free_bytes) / mib);
  if (free_bytes < least_free_bytes) {
    return {"cache", Verdict::problem, text + ": too little room for new kernels"};
  }
  if (kind.is_network) {
    return {"cache", Verdict::note, text + ": a directory on this machine would be quicker"};
  }
  return {"cache", Verdict::good, text};
}

}  // namespace

std::vector<Finding> examine_cache(const CacheOptions& options) {
  const DiskCache cache(options, {});
  std::vector<Finding> findings = {examine_directory(cache)};
  for (const CacheLayer& layer : cache.layers()) {
    findings.push_back(examine_layer(layer));
  }
  return findings;
}

}  // namespace attnjit
