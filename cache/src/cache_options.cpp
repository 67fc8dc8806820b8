#include "attnjit/cache_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void warn_of_variable(const CacheWarningHandler& warn, std::string_view name,
                      std::string_view value, std::string_view allowed) {
  if (warn) {
    warn(std::string(name) + " = \"" + std::string(value) + "\": allowed is " +
         std::string(allowed) + "; the default is used; fix: set it so, or unset it");
  }
}

// Where there is no current directory the path stays relative, and names no layer.
fs::path from_current_directory(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

// By what is there, else by the name that it will have.
bool is_same_place(const fs::path& left, const fs::path& right) {
  const auto whole_name = [](const fs::path& path) {
    std::error_code error;
    const fs::path name = fs::weakly_canonical(path, error);
    const fs::path& known = error ? path : name;
    return known.has_filename() ? known : known.parent_path();
  };
  std::error_code error;
  return fs::equivalent(left, right, error) || whole_name(left) == whole_name(right);
}

std::vector<fs::path> split_paths(std::string_view text) {
  std::vector<fs::path> paths;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) {
      paths.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return paths;
}

CacheSharing sharing_of_environment(const CacheWarningHandler& warn) {
  const std::string_view value = variable("ATTNJIT_CACHE_SHARED");
  if (value == "1") {
    return CacheSharing::group;
  }
  if (!value.empty() && value != "0") {
    warn_of_variable(warn, "ATTNJIT_CACHE_SHARED", value,
                     "1 (a directory that a group shares) or 0 (one of the user's own)");
  }
  return CacheSharing::owner;
}

std::uint64_t max_bytes_of_environment(const CacheWarningHandler& warn) {
  const std::string_view value = variable("ATTNJIT_CACHE_MAX_BYTES");
  if (value.empty()) {
    return default_cache_max_bytes;
  }
  const std::optional<std::uint64_t> bytes = parse_byte_count(value);
  if (!bytes) {
    warn_of_variable(warn, "ATTNJIT_CACHE_MAX_BYTES", value,
                     "a positive number of bytes, also as 512M or 2G, or unlimited");
  }
  return bytes.value_or(default_cache_max_bytes);
}

}  // namespace

std::vector<fs::path> distinct_layers(const std::optional<fs::path>& directory,
                                      const std::vector<fs::path>& layers) {
  std::vector<fs::path> distinct;
  for (const fs::path& layer : layers) {
    const auto is_layer = [&](const fs::path& other) { return is_same_place(layer, other); };
    if (!(directory && is_layer(*directory)) &&
        std::none_of(distinct.begin(), distinct.end(), is_layer)) {
      distinct.push_back(layer);
    }
  }
  return distinct;
}

std::optional<std::uint64_t> parse_byte_count(std::string_view text) {
  if (text == "unlimited") {
    return unlimited_cache_bytes;
  }
  constexpr std::string_view units = "KMGT";
  unsigned shift = 0;
  if (!text.empty() && units.find(text.back()) != std::string_view::npos) {
    shift = 10 * static_cast<unsigned>(units.find(text.back()) + 1);
    text.remove_suffix(1);
  }
  std::uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || stop != end || count == 0 ||
      count > (unlimited_cache_bytes >> shift)) {
    return std::nullopt;
  }
  return count << shift;
}

CacheOptions resolve_cache_options(const CacheChoice& choice, const CacheWarningHandler& warn) {
  CacheOptions options{
      .directory = resolve_cache_directory(choice.directory),
      .layers =
          choice.layers.empty() ? split_paths(variable("ATTNJIT_CACHE_LAYERS")) : choice.layers,
      .sharing = choice.sharing ? *choice.sharing : sharing_of_environment(warn),
      .max_bytes = choice.max_bytes ? *choice.max_bytes : max_bytes_of_environment(warn)};
  for (fs::path& layer : options.layers) {
    layer = from_current_directory(layer);
  }
  return options;
}

}  // namespace attnjit
