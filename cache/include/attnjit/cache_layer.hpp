// A read-only layer of a cache: a directory of the layout of a cache directory, or a bundle file
// (cache_bundle.hpp). Opened when it is first asked; what is wrong with it is a reason to miss,
// never an error. Thread-safe; holds a bundle's file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/cache_key.hpp"
#include "attnjit/cache_lookup.hpp"

namespace attnjit {

enum class LayerKind { missing, directory, bundle, unusable };
std::string_view to_string(LayerKind);

struct LayerState {
  LayerKind kind = LayerKind::missing;
  MissReason reason = MissReason::absent;  // of all misses, where it is missing or unusable
  std::string problem;                     // then: what is wrong and what to do, without the path
  // Of a bundle: how long the file is, and how long its index says. One that is cut off serves what
  // is left of it.
  std::uint64_t file_bytes = 0;
  std::uint64_t expected_bytes = 0;
};

class CacheLayer {
 public:
  explicit CacheLayer(std::filesystem::path path);
  ~CacheLayer();
  CacheLayer(CacheLayer&&) noexcept;

  const std::filesystem::path& path() const;

  // A missing layer is looked for again at each call, any other one is judged once.
  LayerState state() const;

  // The verified entry of `key`.
  CacheLookup find(const CacheKey& key) const;

  // The verified entry of a digest of 32 hex digits, whatever its key text says.
  CacheLookup read(std::string_view digest) const;

  // What it holds, sorted by digest; unverified.
  std::vector<StoredEntry> list() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnjit
