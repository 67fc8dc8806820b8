#include "attnjit/cache_layer.hpp"

#include <cerrno>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "bundle_file.hpp"
#include "cache_trust.hpp"
#include "entry_layout.hpp"
#include "entry_lookup.hpp"
#include "entry_tree.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

struct OpenedLayer {
  LayerState state;
  std::shared_ptr<const BundleFile> bundle;  // of a bundle
};

OpenedLayer unusable(MissReason reason, std::string problem) {
  return {{LayerKind::unusable, reason, std::move(problem), 0, 0}, nullptr};
}

OpenedLayer open_bundle(FileDescriptor file, const struct stat& status, const fs::path& path) {
  auto bundle = std::make_shared<const BundleFile>(
      std::move(file), static_cast<std::uint64_t>(status.st_size), path);
  if (!bundle->problem().empty()) {
    return unusable(bundle->reason(), bundle->problem());
  }
  return {
      {LayerKind::bundle, MissReason::absent, "", bundle->file_bytes(), bundle->expected_bytes()},
      bundle};
}

OpenedLayer open_layer(const fs::path& path) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  FileDescriptor file(retry_interrupted([&] { return ::open(path.c_str(), flags); }));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    const bool is_missing = errno == ENOENT || errno == ENOTDIR;
    const FileOutcome outcome = failed("open the layer");
    const std::string problem = outcome.message();
    return is_missing
               ? OpenedLayer{{LayerKind::missing, MissReason::absent, problem, 0, 0}, nullptr}
               : unusable(MissReason::unreadable, problem);
  }
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
    return unusable(MissReason::unreadable,
                    "neither a directory nor a bundle; fix: name one of these");
  }
  if (TrustVerdict verdict = judge_layer(status); verdict.trust == Trust::refused) {
    return unusable(MissReason::untrusted, std::move(verdict.problem));
  }
  if (S_ISDIR(status.st_mode)) {
    return {{LayerKind::directory, MissReason::absent, "", 0, 0}, nullptr};
  }
  return open_bundle(std::move(file), status, path);
}

CacheLookup read_in_directory(const fs::path& directory, std::string_view digest) {
  const fs::path path = entry_path(directory, digest);
  WholeFile file;
  CacheLookup lookup = read_entry(path, file);
  if (TrustVerdict verdict = judge_layer(file.status); verdict.trust == Trust::refused) {
    return miss(MissReason::untrusted, path, verdict.problem);
  }
  return lookup;
}

}  // namespace

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::missing:
      return "missing";
    case LayerKind::directory:
      return "directory";
    case LayerKind::bundle:
      return "bundle";
    case LayerKind::unusable:
      return "unusable";
  }
  return "";
}

struct CacheLayer::State {
  explicit State(fs::path layer_path) : path(std::move(layer_path)) {}

  OpenedLayer open() {
    const std::scoped_lock lock(mutex);
    if (opened.state.kind == LayerKind::missing) {
      opened = open_layer(path);
    }
    return opened;
  }

  fs::path path;
  std::mutex mutex;  // guards what follows
  OpenedLayer opened;
};

CacheLayer::CacheLayer(fs::path path) : state_(std::make_unique<State>(std::move(path))) {}
CacheLayer::~CacheLayer() = default;
CacheLayer::CacheLayer(CacheLayer&&) noexcept = default;

const fs::path& CacheLayer::path() const {
  return state_->path;
}

LayerState CacheLayer::state() const {
  return state_->open().state;
}

CacheLookup CacheLayer::read(std::string_view digest) const {
  const OpenedLayer layer = state_->open();
  switch (layer.state.kind) {
    case LayerKind::directory:
      return read_in_directory(state_->path, digest);
    case LayerKind::bundle:
      return layer.bundle->read(digest);
    case LayerKind::missing:
    case LayerKind::unusable:
      break;
  }
  return miss(layer.state.reason, state_->path, layer.state.problem);
}

CacheLookup CacheLayer::find(const CacheKey& key) const {
  return require_key(read(key.digest), key, state_->path);
}

std::vector<StoredEntry> CacheLayer::list() const {
  const OpenedLayer layer = state_->open();
  if (layer.state.kind == LayerKind::directory) {
    return list_entries(state_->path);
  }
  std::vector<StoredEntry> entries;
  if (layer.bundle != nullptr) {
    for (const BundleRow& row : layer.bundle->rows()) {
      entries.push_back({row.digest, state_->path, row.bytes});
    }
  }
  return entries;
}

}  // namespace attnjit
