// Kernels that are ready, by descriptor and device: what every call of prepare_* looks into first.
// A hit takes no lock that another hit waits for and allocates nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

// Over all fields, each times an odd number of its own: the products do not wait for each other.
inline std::size_t hash_of(const AttentionDescriptor& descriptor) {
  std::uint64_t hash = 0;
  std::uint64_t factor = 0x9e3779b97f4a7c15;
  for_each_field(descriptor, [&](const char*, const auto& field) {
    factor += 0x632be59bd9b4e01a;
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>) {
      hash += field.empty() ? 0 : std::hash<std::string>{}(field)*factor;
    } else {
      hash += static_cast<std::uint64_t>(field) * factor;
    }
  });
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

template <typename Prepared>
class PreparedTable {
 public:
  // Null if there is none.
  std::shared_ptr<const Prepared> find(const AttentionDescriptor& descriptor, int device) const {
    const std::shared_lock lock(mutex_);
    const auto found = kernels_.find(KeyView{descriptor, device});
    return found == kernels_.end() ? nullptr : found->second;
  }

  // What is in the table afterwards: `prepared`, or what another thread put there before.
  std::shared_ptr<const Prepared> add(const AttentionDescriptor& descriptor, int device,
                                      std::shared_ptr<const Prepared> prepared) {
    const std::unique_lock lock(mutex_);
    return kernels_.emplace(Key{descriptor, device}, std::move(prepared)).first->second;
  }

 private:
  struct Key {
    AttentionDescriptor descriptor;
    int device;
  };

  // A key that is not owned: a descriptor holds strings.
  struct KeyView {
    const AttentionDescriptor& descriptor;
    int device;
  };

  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    template <typename AnyKey>
    std::size_t operator()(const AnyKey& key) const {
      return hash_of(key.descriptor) + static_cast<std::size_t>(key.device);
    }
  };

  struct Equal {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    template <typename Left, typename Right>
    bool operator()(const Left& left, const Right& right) const {
      return left.device == right.device && left.descriptor == right.descriptor;
    }
  };

  mutable std::shared_mutex mutex_;  // never held while compiling
  std::unordered_map<Key, std::shared_ptr<const Prepared>, Hash, Equal> kernels_;
};

}  // namespace attnjit
