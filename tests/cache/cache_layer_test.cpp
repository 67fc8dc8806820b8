// DiskCache with read-only layers: directories and bundle files.
#include <string>
#include <vector>

#include <unistd.h>

#include "attnjit/cache_bundle.hpp"
#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScratchDirectory;

CacheKey key_of(const std::string& source) {
  return CacheKeyBuilder().add("source", source).finish();
}

void fill(const fs::path& directory, const std::vector<std::string>& sources) {
  DiskCache cache(directory, nullptr);
  for (const std::string& source : sources) {
    REQUIRE(cache.put(key_of(source), "of " + directory.filename().string(), source));
  }
}

fs::path bundle_of(const fs::path& directory, const fs::path& path) {
  const CacheLayer layer(directory);
  std::vector<BundleItem> items;
  for (const StoredEntry& entry : layer.list()) {
    items.push_back({&layer, entry.digest});
  }
  const std::uint64_t bytes = write_bundle(path, items);
  CHECK(bytes == fs::file_size(path));
  return path;
}

std::string metadata_of(const DiskCache& cache, const std::string& source) {
  const CacheLookup lookup = cache.get(key_of(source));
  return lookup.entry ? lookup.entry->metadata : std::string(to_string(lookup.reason));
}

CacheOptions options_of(const fs::path& directory, std::vector<fs::path> layers) {
  CacheOptions options;
  options.directory = directory;
  options.layers = std::move(layers);
  return options;
}

}  // namespace

TEST_CASE("layers and bundles: the written directory comes first, then the layers in their order") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "own", {"a"});
  fill(scratch.path() / "first", {"a", "b"});
  fill(scratch.path() / "second", {"a", "b", "c"});
  const fs::path bundle = bundle_of(scratch.path() / "second", scratch.path() / "second.bundle");
  const DiskCache cache(options_of(scratch.path() / "own", {scratch.path() / "first", bundle}),
                        nullptr);
  CHECK(metadata_of(cache, "a") == "of own");
  CHECK(metadata_of(cache, "b") == "of first");
  CHECK(metadata_of(cache, "c") == "of second");
  CHECK(metadata_of(cache, "d") == "absent");
  CHECK(cache.layers()[0].state().kind == LayerKind::directory);
  CHECK(cache.layers()[1].state().kind == LayerKind::bundle);
}

TEST_CASE("layers and bundles: one directory is one layer, whatever it is called") {
  const ScratchDirectory scratch;
  const fs::path& path = scratch.path();
  fill(path / "layer", {"a"});
  const fs::path bundle = bundle_of(path / "layer", path / "some.bundle");
  fs::create_directory_symlink("layer", path / "link");
  fs::create_symlink("some.bundle", path / "bundle");
  fs::create_directory_symlink("own", path / "own_link");
  const auto layers_of = [&](const fs::path& own, std::vector<fs::path> layers) {
    const DiskCache cache(options_of(own, std::move(layers)), nullptr);
    CHECK(cache.probe(key_of("a")).size() == cache.layers().size() + 1);
    CHECK(cache.options().layers.size() == cache.layers().size());
    return cache.layers().size();
  };
  CHECK(layers_of(path / "own", {path / "layer", path / "layer"}) == 1);
  CHECK(layers_of(path / "own", {path / "layer/", path / "link", path / "./layer"}) == 1);
  CHECK(layers_of(path / "own", {bundle, path / "bundle", path / "layer"}) == 2);
  CHECK(layers_of(path / "own", {path / "none", path / "none/", path / "x/../none"}) == 1);
  CHECK(layers_of(path / "own", {path / "own/", path / "layer", path / "own"}) == 1);
  fs::create_directory(path / "own");
  CHECK(layers_of(path / "own", {path / "own_link", path / "own/"}) == 0);
  CHECK(layers_of(path / "link", {path / "layer"}) == 0);
}

TEST_CASE("layers and bundles: a miss names every place, and a probe has one answer for each") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "layer", {"a"});
  const fs::path bundle = bundle_of(scratch.path() / "layer", scratch.path() / "some.bundle");
  test::write_text(
      scratch.path() / "layer/v1" / key_of("a").digest.substr(0, 2) / key_of("a").digest.substr(2),
      "damaged");
  const DiskCache cache(
      options_of(scratch.path() / "own", {scratch.path() / "layer", bundle, "/no/such/layer"}),
      nullptr);
  const std::vector<LayerProbe> probes = cache.probe(key_of("a"));
  REQUIRE(probes.size() == 4);
  CHECK(probes[0].lookup.reason == MissReason::absent);
  CHECK(probes[1].lookup.reason == MissReason::corrupt);
  CHECK(probes[2].lookup.entry.has_value());
  CHECK(probes[3].place == "/no/such/layer");
  CHECK(probes[3].lookup.reason == MissReason::absent);
  CHECK(cache.get(key_of("a")).entry.has_value());
  const CacheLookup lookup = cache.get(key_of("b"));
  CHECK(lookup.reason == MissReason::absent);
  for (const LayerProbe& probe : probes) {
    CHECK(lookup.detail.find(probe.place) != std::string::npos);
  }
}

TEST_CASE("layers and bundles: a layer that is missing, untrusted or damaged costs only itself") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "good", {"a"});
  fill(scratch.path() / "open", {"a"});
  fs::permissions(scratch.path() / "open", fs::perms(0777));
  test::write_text(scratch.path() / "damaged", std::string(1000, 'x'));
  std::vector<std::string> warnings;
  const DiskCache cache(
      options_of(scratch.path() / "own", {scratch.path() / "none", scratch.path() / "open",
                                          scratch.path() / "damaged", scratch.path() / "good"}),
      [&](std::string_view warning) { warnings.emplace_back(warning); });
  for (int i = 0; i < 3; ++i) {
    CHECK(metadata_of(cache, "a") == "of good");
  }
  REQUIRE(warnings.size() == 3);
  CHECK(warnings[0].find("none: cannot open the layer") != std::string::npos);
  CHECK(warnings[1].find("chmod o-w") != std::string::npos);
  CHECK(warnings[2].find("does not begin as a bundle does") != std::string::npos);
  CHECK(cache.probe(key_of("a"))[2].lookup.reason == MissReason::untrusted);
  CHECK(cache.probe(key_of("a"))[3].lookup.reason == MissReason::corrupt);
}

TEST_CASE("layers and bundles: a device is no layer, and nobody is told to change its mode") {
  const ScratchDirectory scratch;
  std::vector<std::string> warnings;
  const DiskCache cache(options_of(scratch.path() / "own", {"/dev/null"}),
                        [&](std::string_view warning) { warnings.emplace_back(warning); });
  CHECK(metadata_of(cache, "a") == "unreadable");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("neither a directory nor a bundle; fix: name one of these") !=
        std::string::npos);
  CHECK(cache.probe(key_of("a"))[1].lookup.reason == MissReason::unreadable);
}

TEST_CASE("layers and bundles: an entry that everybody can write is not taken from a layer") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "layer", {"a"});
  const CacheLayer layer(scratch.path() / "layer");
  CHECK(layer.find(key_of("a")).entry.has_value());
  fs::permissions(layer.list().front().path, fs::perms(0666));
  CHECK(layer.find(key_of("a")).reason == MissReason::untrusted);
}

TEST_CASE("layers and bundles: a layer that appears later is found") {
  const ScratchDirectory scratch;
  const DiskCache cache(options_of(scratch.path() / "own", {scratch.path() / "layer"}), nullptr);
  CHECK(metadata_of(cache, "a") == "absent");
  fill(scratch.path() / "layer", {"a"});
  CHECK(metadata_of(cache, "a") == "of layer");
}

TEST_CASE("layers and bundles: layers are never written, touched or repaired") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "layer", {"a", "b"});
  const CacheLayer layer(scratch.path() / "layer");
  const StoredEntry a = layer.read(key_of("a").digest).entry ? layer.list()[0] : StoredEntry();
  fs::last_write_time(a.path, fs::file_time_type::clock::now() - std::chrono::hours(5));
  const auto before = fs::last_write_time(a.path);
  for (const StoredEntry& entry : layer.list()) {
    if (entry.path != a.path) {
      fs::resize_file(entry.path, entry.bytes - 1);
    }
  }
  const DiskCache cache(options_of(scratch.path() / "own", {scratch.path() / "layer"}), nullptr);
  const std::string hit = metadata_of(cache, "a");
  const std::string miss = metadata_of(cache, "b");
  CHECK(((hit == "of layer") != (miss == "of layer")));  // one of them was damaged
  CHECK(fs::last_write_time(a.path) == before);
  CHECK(layer.list().size() == 2);
}

TEST_CASE("layers and bundles: two exports are equal to the byte, wherever the entries lie") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "x/cache", {"a", "b", "c"});
  fill(scratch.path() / "y/cache", {"c", "a", "b"});
  const fs::path first = bundle_of(scratch.path() / "x/cache", scratch.path() / "first");
  const fs::path second = bundle_of(scratch.path() / "y/cache", scratch.path() / "second");
  CHECK(test::read_text(first) == test::read_text(second));
  CHECK(fs::status(first).permissions() == fs::perms(0644));
  const fs::path third = bundle_of(first, scratch.path() / "third");  // out of a bundle
  CHECK(test::read_text(first) == test::read_text(third));
}

TEST_CASE("layers and bundles: a damaged entry is not bundled, and nothing is left") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "cache", {"a"});
  const CacheLayer layer(scratch.path() / "cache");
  fs::resize_file(layer.list()[0].path, 60);
  const fs::path target = scratch.path() / "some.bundle";
  CHECK_THROWS_AS(write_bundle(target, {{&layer, key_of("a").digest}}), BundleError);
  CHECK_THROWS_AS(write_bundle("/proc/some.bundle", {}), BundleError);
  CHECK_FALSE(fs::exists(target));
  CHECK(test::count_temporary_files(scratch.path()) == 0);
}

TEST_CASE(
    "layers and bundles: a bundle changed in any byte loses at most what the byte is part of") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "cache", {"a", "b", "c"});
  const std::string whole =
      test::read_text(bundle_of(scratch.path() / "cache", scratch.path() / "whole"));
  const std::size_t index_bytes = 36 + 3 * 48;
  const fs::path path = scratch.path() / "changed";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(~changed[i]);
    test::write_text(path, changed);
    const CacheLayer layer(path);
    int hits = 0;
    for (const std::string source : {"a", "b", "c"}) {
      const CacheLookup lookup = layer.find(key_of(source));
      hits += lookup.entry ? 1 : 0;
      REQUIRE((!lookup.entry || lookup.entry->payload == source));
    }
    REQUIRE(hits == (i < index_bytes ? 0 : 2));
  }
}

TEST_CASE("layers and bundles: a bundle cut off at any byte loses what is cut off") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "cache", {"a", "b", "c"});
  const fs::path path = bundle_of(scratch.path() / "cache", scratch.path() / "cut");
  const std::size_t size = fs::file_size(path);
  const std::size_t index_bytes = 36 + 3 * 48;
  const std::size_t entry_bytes = (size - index_bytes) / 3;
  for (std::size_t cut = size; cut-- > 0;) {
    fs::resize_file(path, cut);
    const CacheLayer layer(path);
    std::size_t hits = 0;
    for (const std::string source : {"a", "b", "c"}) {
      hits += layer.find(key_of(source)).entry ? 1 : 0;
    }
    REQUIRE(hits == (cut < index_bytes ? 0 : (cut - index_bytes) / entry_bytes));
  }
}

TEST_CASE(
    "layers and bundles: the state of a bundle says how long it is and how long it should be") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "layer", {"a", "b"});
  const fs::path bundle = bundle_of(scratch.path() / "layer", scratch.path() / "some.bundle");
  const std::uint64_t bytes = fs::file_size(bundle);
  for (const std::uint64_t kept : {bytes + 1, bytes, bytes - 1, std::uint64_t{20 + 2 * 48 + 16}}) {
    fs::resize_file(bundle, kept);
    const LayerState state = CacheLayer(bundle).state();
    CHECK(state.kind == LayerKind::bundle);
    CHECK(state.file_bytes == kept);
    CHECK(state.expected_bytes == bytes);
  }
  for (const auto& [kept, expected] : {std::pair(131, 132), std::pair(20, 36), std::pair(3, 36)}) {
    fs::resize_file(bundle, static_cast<std::uint64_t>(kept));
    const LayerState state = CacheLayer(bundle).state();
    CHECK(state.kind == LayerKind::unusable);
    CHECK(state.problem.find("is cut off: expected are at least " + std::to_string(expected) +
                             " bytes") == 0);
    CHECK(state.problem.find("it has " + std::to_string(kept)) != std::string::npos);
  }
}

TEST_CASE("layers and bundles: a bundle serves a user who owns none of it") {
  const ScratchDirectory scratch;
  fill(scratch.path() / "cache", {"a"});
  const fs::path bundle = bundle_of(scratch.path() / "cache", scratch.path() / "some.bundle");
  const int result = test::run_in_child([&] {
    test::become_user(65534);
    CacheOptions options;
    options.layers = {bundle};
    const DiskCache cache(options, nullptr);
    return cache.get(key_of("a")).entry ? 0 : 1;
  });
  CHECK((result == 0 || result == test::not_permitted));
}

}  // namespace attnjit
