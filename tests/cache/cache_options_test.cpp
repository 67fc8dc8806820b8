#include <string>
#include <vector>

#include "attnjit/cache_options.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScopedVariable;

struct Resolved {
  CacheOptions options;
  std::vector<std::string> warnings;
};

Resolved resolve(const CacheChoice& choice) {
  Resolved resolved;
  resolved.options = resolve_cache_options(
      choice, [&](std::string_view warning) { resolved.warnings.emplace_back(warning); });
  return resolved;
}

struct CacheVariables {
  ScopedVariable layers;
  ScopedVariable shared;
  ScopedVariable max_bytes;

  CacheVariables(std::optional<std::string> layers_value, std::optional<std::string> shared_value,
                 std::optional<std::string> max_bytes_value)
      : layers("ATTNJIT_CACHE_LAYERS", std::move(layers_value)),
        shared("ATTNJIT_CACHE_SHARED", std::move(shared_value)),
        max_bytes("ATTNJIT_CACHE_MAX_BYTES", std::move(max_bytes_value)) {}
};

}  // namespace

TEST_CASE("without options and variables a cache is one user's, has no layers and takes 2 GiB") {
  const CacheVariables variables(std::nullopt, "", std::nullopt);
  const Resolved resolved = resolve({});
  CHECK(resolved.options.layers.empty());
  CHECK(resolved.options.sharing == CacheSharing::owner);
  CHECK(resolved.options.max_bytes == 2147483648);
  CHECK(resolved.warnings.empty());
}

TEST_CASE("variables name layers, sharing and cap, and options come before them") {
  const CacheVariables variables("/a:relative/b::/c.bundle", "1", "512M");
  const Resolved resolved = resolve({});
  CHECK(resolved.options.layers ==
        std::vector<fs::path>{"/a", fs::current_path() / "relative/b", "/c.bundle"});
  CHECK(resolved.options.sharing == CacheSharing::group);
  CHECK(resolved.options.max_bytes == 512 << 20);
  CacheChoice choice;
  choice.layers = {"/d"};
  choice.sharing = CacheSharing::owner;
  choice.max_bytes = 5;
  const CacheOptions chosen = resolve(choice).options;
  CHECK(chosen.layers == std::vector<fs::path>{"/d"});
  CHECK(chosen.sharing == CacheSharing::owner);
  CHECK(chosen.max_bytes == 5);
}

TEST_CASE("a variable with a value that is not allowed is one warning, and the default") {
  const CacheVariables variables(std::nullopt, "yes", "2GB");
  const Resolved resolved = resolve({});
  CHECK(resolved.options.sharing == CacheSharing::owner);
  CHECK(resolved.options.max_bytes == default_cache_max_bytes);
  REQUIRE(resolved.warnings.size() == 2);
  CHECK(resolved.warnings[0] ==
        "ATTNJIT_CACHE_SHARED = \"yes\": allowed is 1 (a directory that a group shares) or 0 (one "
        "of the user's own); the default is used; fix: set it so, or unset it");
  CHECK(resolved.warnings[1] ==
        "ATTNJIT_CACHE_MAX_BYTES = \"2GB\": allowed is a positive number of bytes, also as 512M or "
        "2G, or unlimited; the default is used; fix: set it so, or unset it");
}

TEST_CASE("a byte count is a positive number, a multiple of 1024s, or unlimited") {
  CHECK(parse_byte_count("500000") == 500000);
  CHECK(parse_byte_count("3K") == 3072);
  CHECK(parse_byte_count("2G") == std::uint64_t{2} << 30);
  CHECK(parse_byte_count("1T") == std::uint64_t{1} << 40);
  CHECK(parse_byte_count("unlimited") == unlimited_cache_bytes);
  for (const std::string bad : {"", "0", "-1", "1.5G", "G", "1g", " 1", "1 ", "0x10", "1KK",
                                "18446744073709551616", "99999999999T"}) {
    INFO(bad);
    CHECK_FALSE(parse_byte_count(bad).has_value());
  }
}

}  // namespace attnjit
