#include "stored_kernel.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "edit_distance.hpp"
#include "key_sections.hpp"

namespace attnjit {
namespace {

constexpr std::size_t fewest_key_digits = 6;
constexpr std::size_t digest_digits = 32;
constexpr std::size_t most_near_keys = 5;
constexpr std::size_t near_distance = 2;  // edits

// Puts the section where the kernel has it. Sections of toolchain and options have no place there.
void add_section(RenderedKernel& kernel, const KeySection& section) {
  if (section.tag == "arch") {
    kernel.arch = section.bytes;
  } else if (section.tag == "entry") {
    kernel.entry = section.bytes;
  } else if (section.tag == "source") {
    kernel.source = section.bytes;
  } else if (section.tag == "header") {
    kernel.headers.push_back({std::string(section.bytes), ""});
  } else if (section.tag == "text" && !kernel.headers.empty()) {
    kernel.headers.back().text = section.bytes;
  }
}

std::optional<StoredKernel> parse_stored_kernel(const StoredEntry& stored, CacheLookup& lookup) {
  if (!lookup.entry) {
    return std::nullopt;
  }
  auto metadata = parse_kernel_metadata(lookup.entry->metadata);
  auto kernel = parse_kernel_key_text(lookup.entry->key_text);
  if (!metadata || !kernel) {
    return std::nullopt;  // e.g. the record of a toolchain
  }
  kernel->name = metadata->name;
  kernel->config = metadata->config;
  kernel->num_threads = metadata->num_threads;
  kernel->shared_memory_bytes = metadata->shared_memory_bytes;
  return StoredKernel{.digest = stored.digest,
                      .path = stored.path,
                      .entry_bytes = stored.bytes,
                      .key_text = std::move(lookup.entry->key_text),
                      .kernel = std::move(*kernel),
                      .metadata = std::move(*metadata),
                      .cubin_bytes = lookup.entry->payload.size()};
}

// "  <digest>  <kernel>, <arch>" for each kernel among `entries`, at most `limit` of them.
std::string list_kernels(const std::vector<PlacedEntry>& entries, std::size_t limit) {
  std::string text;
  std::size_t shown = 0;
  for (const PlacedEntry& entry : entries) {
    CacheLookup lookup = entry.read();
    const auto kernel = parse_stored_kernel(entry.stored, lookup);
    if (kernel && shown < limit) {
      ++shown;
      text += fmt::format("\n  {}  {}, {}: {}", kernel->digest, kernel->metadata.name,
                          kernel->metadata.arch, kernel->metadata.config);
    }
  }
  return text;
}

std::vector<PlacedEntry> near_entries(const std::vector<PlacedEntry>& entries,
                                      std::string_view prefix) {
  std::vector<std::pair<std::size_t, PlacedEntry>> ranked;
  for (const PlacedEntry& entry : entries) {
    const std::size_t distance =
        edit_distance(prefix, std::string_view(entry.stored.digest).substr(0, prefix.size()));
    if (distance <= near_distance) {
      ranked.emplace_back(distance, entry);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PlacedEntry> near;
  for (auto& [distance, entry] : ranked) {
    near.push_back(std::move(entry));
  }
  return near;
}

std::string place_of(const DiskCache& cache) {
  return cache.directory() ? cache.directory()->string() : "memory (no directory is set)";
}

[[noreturn]] void throw_unknown(const DiskCache& cache, const std::vector<PlacedEntry>& entries,
                                std::string_view prefix) {
  const std::string near = list_kernels(near_entries(entries, prefix), most_near_keys);
  throw UnknownKeyError(fmt::format(
      "key = {}: no kernel in the cache {} has a key that begins so{}", prefix, place_of(cache),
      near.empty() ? "; fix: take a key from the table or the JSON of `attnjit warm`, or name the "
                     "cache with --cache-dir"
                   : "; near ones:" + near));
}

}  // namespace

bool looks_like_key(std::string_view text) {
  return text.size() >= fewest_key_digits && text.size() <= digest_digits &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char digit) { return std::isxdigit(digit) != 0; });
}

std::optional<RenderedKernel> parse_kernel_key_text(std::string_view key_text) {
  const auto sections = split_key_text(key_text);
  if (!sections) {
    return std::nullopt;
  }
  RenderedKernel kernel;
  for (const KeySection& section : *sections) {
    add_section(kernel, section);
  }
  if (kernel.source.empty() || kernel.arch.empty() || kernel.entry.empty()) {
    return std::nullopt;
  }
  return kernel;
}

std::vector<PlacedEntry> list_entry_places(const DiskCache& cache) {
  std::vector<PlacedEntry> entries;
  for (StoredEntry& entry : cache.list()) {
    entries.push_back({std::move(entry), nullptr});
  }
  for (const CacheLayer& layer : cache.layers()) {
    for (StoredEntry& entry : layer.list()) {
      entries.push_back({std::move(entry), &layer});
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const PlacedEntry& a, const PlacedEntry& b) {
    return a.stored.digest < b.stored.digest;
  });
  const auto is_same = [](const PlacedEntry& a, const PlacedEntry& b) {
    return a.stored.digest == b.stored.digest;
  };
  entries.erase(std::unique(entries.begin(), entries.end(), is_same), entries.end());
  return entries;
}

StoredKernels list_stored_kernels(const DiskCache& cache) {
  StoredKernels stored;
  for (const PlacedEntry& entry : list_entry_places(cache)) {
    ++stored.num_entries;
    stored.total_bytes += entry.stored.bytes;
    CacheLookup lookup = entry.read();
    if (auto kernel = parse_stored_kernel(entry.stored, lookup)) {
      stored.kernels.push_back(std::move(*kernel));
    } else if (!lookup.entry) {
      stored.damaged.push_back({entry.stored.digest, lookup.reason, std::move(lookup.detail)});
    }
  }
  const auto order = [](const StoredKernel& kernel) {
    return std::tie(kernel.metadata.name, kernel.metadata.arch, kernel.metadata.config,
                    kernel.digest);
  };
  std::sort(stored.kernels.begin(), stored.kernels.end(),
            [&](const StoredKernel& a, const StoredKernel& b) { return order(a) < order(b); });
  return stored;
}

StoredKernel find_stored_kernel(const DiskCache& cache, std::string_view prefix) {
  std::string wanted(prefix);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char digit) { return static_cast<char>(std::tolower(digit)); });
  const std::vector<PlacedEntry> entries = list_entry_places(cache);
  std::vector<PlacedEntry> matches;
  std::vector<StoredKernel> kernels;
  std::string unreadable;
  for (const PlacedEntry& entry : entries) {
    if (!entry.stored.digest.starts_with(wanted)) {
      continue;
    }
    CacheLookup lookup = entry.read();
    if (auto kernel = parse_stored_kernel(entry.stored, lookup)) {
      matches.push_back(entry);
      kernels.push_back(std::move(*kernel));
    } else if (!lookup.entry) {
      unreadable = lookup.detail;
    }
  }
  if (kernels.size() > 1) {
    throw UnknownKeyError(
        fmt::format("key = {}: {} kernels have a key that begins so; fix: give "
                    "more digits:{}",
                    prefix, kernels.size(), list_kernels(matches, matches.size())));
  }
  if (!kernels.empty()) {
    return std::move(kernels.front());
  }
  if (!unreadable.empty()) {
    throw std::runtime_error(
        fmt::format("key = {}: its entry cannot be used ({}); fix: run `attnjit "
                    "warm` again, which replaces it",
                    prefix, unreadable));
  }
  throw_unknown(cache, entries, wanted);
}

}  // namespace attnjit
