// Caches that cannot be written, layers that are named twice or cut off: what gc, mount, stats and
// verify say of them.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/cache_bundle.hpp"
#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Two entries, which are records of something.
void fill(const fs::path& directory) {
  DiskCache cache(directory, nullptr);
  for (const std::string text : {"a", "b"}) {
    REQUIRE(cache.put(CacheKeyBuilder().add("source", text).finish(), "", text));
  }
}

std::string quoted(const fs::path& path) {
  return " '" + path.string() + "'";
}

fs::path bundle_of(const fs::path& directory, const fs::path& path) {
  const CacheLayer layer(directory);
  std::vector<BundleItem> items;
  for (const StoredEntry& entry : layer.list()) {
    items.push_back({&layer, entry.digest});
  }
  write_bundle(path, items);
  return path;
}

}  // namespace

TEST_CASE(
    "gc says why a cache cannot be cleaned up, and counts what it would remove all the same") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  fs::remove(cache / "locks" / "cleanup");
  fs::create_directories(cache / "locks" / "cleanup");  // no lock can be made, also not by root
  const CommandOutput output = run_attnjit("gc --max-bytes 0 --cache-dir" + quoted(cache));
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, cache.string() + ": cannot be cleaned up, for no lock can be made"));
  CHECK(holds(output.err, "locks/cleanup: "));
  CHECK(holds(output.err, "; fix: "));
  CHECK(!holds(output.err, "another process"));
  const CommandOutput dry = run_attnjit("gc --max-bytes 0 --dry-run --cache-dir" + quoted(cache));
  CHECK(dry.exit_code == 0);
  CHECK(holds(dry.out, "would remove 2 least recently used entry files"));
}

TEST_CASE("a directory that is named as two layers, or as a layer of itself, counts once") {
  const TemporaryDirectory directory;
  const fs::path own = directory.path() / "own";
  const fs::path layer = directory.path() / "layer";
  fill(own);
  fill(layer);
  fs::create_directory_symlink("layer", directory.path() / "link");
  const std::string places = fmt::format(
      " --cache-dir{} --cache-layer{} --cache-layer '{}/' --cache-layer{} "
      "--cache-layer '{}/' --json",
      quoted(own), quoted(layer), layer.string(), quoted(directory.path() / "link"), own.string());
  CHECK(json::parse(run_attnjit("stats" + places).out).at("layers").size() == 1);
  CHECK(json::parse(run_attnjit("verify" + places).out).at("entries") == 4);
  const CommandOutput missing =
      run_attnjit(fmt::format("ls --cache-dir{0} --cache-layer{1} --cache-layer{1}", quoted(own),
                              quoted(directory.path() / "none")));
  CHECK(count_of(missing.err, "is left out") == 1);
  const CommandOutput mounted =
      run_attnjit("mount" + quoted(layer) + quoted(fs::path(layer.string() + "/")));
  CHECK(mounted.out == "export ATTNJIT_CACHE_LAYERS=" + quoted(layer).substr(1) + "\n");
}

TEST_CASE("mount refuses a bundle that is cut off, with the bytes that it should have and has") {
  const TemporaryDirectory directory;
  fill(directory.path() / "cache");
  const fs::path bundle = bundle_of(directory.path() / "cache", directory.path() / "bundle");
  const std::uint64_t bytes = fs::file_size(bundle);
  CHECK(run_attnjit("mount" + quoted(bundle)).exit_code == 0);
  for (const std::uint64_t kept : {bytes + 1, bytes - 1, bytes - 60, std::uint64_t{50}}) {
    fs::resize_file(bundle, kept);
    const CommandOutput output = run_attnjit("mount" + quoted(bundle));
    INFO(output.err);
    CHECK(output.exit_code == 2);
    CHECK(output.out.empty());
    CHECK(holds(output.err, "layer = " + bundle.string() + ": "));
    CHECK(holds(output.err, kept > bytes ? "was lengthened" : "is cut off"));
    CHECK(holds(output.err, fmt::format("it has {};", kept)));
    CHECK((kept == 50 || holds(output.err, fmt::format("are {} bytes", bytes))));
  }
}

TEST_CASE("a layer that is not there is named once in a message") {
  const TemporaryDirectory directory;
  const std::string none = (directory.path() / "none").string();
  const std::string own = " --cache-dir" + quoted(directory.path() / "own");
  for (const std::string& command :
       {"mount '" + none + "'", "import '" + none + "'" + own,
        "ls --cache-layer '" + none + "'" + own, "stats --cache-layer '" + none + "'" + own,
        "verify --cache-layer '" + none + "'" + own}) {
    const CommandOutput output = run_attnjit(command);
    INFO(output.err << output.out);
    CHECK(count_of(output.err, none) <= 1);
    CHECK(count_of(output.out, none) <= 1);
    CHECK(holds(output.err + output.out, "No such file or directory"));
  }
}

}  // namespace attnjit
