// attnjit verify, gc, stats, bundle, import and mount, on caches that are written here without a
// compiler.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../cache/scratch_directory.hpp"
#include "../runtime/sample_kernels.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::sample_cubin;

const std::string toolchain = "nvrtc 13.0 of a test";
constexpr std::size_t kernels_of_a_decode = 3;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The kernels of one decode on a card, with the records of their toolchain.
void fill(const fs::path& directory, const std::string& card = "h200") {
  DiskCache cache(directory, nullptr);
  const TargetDevice device = find_target_device(card).value();
  const int architecture = device.compute_capability;
  for (const KernelConfig& config : select_configs(AttentionDescriptor{}, device)) {
    const RenderedKernel kernel = render(config, device, TemplateLibrary::embedded());
    cache.put(make_cache_key(kernel, compile_options(kernel, toolchain), toolchain),
              to_json(describe(kernel, CompiledKernel{}, toolchain)),
              sample_cubin(architecture, kernel.entry));
    cache.put(make_toolchain_record_key(kernel), R"({"record": "toolchain"})", toolchain);
  }
}

CommandOutput run(const std::string& command, const fs::path& directory) {
  return run_attnjit(command + " --cache-dir '" + directory.string() + "'");
}

std::string quoted(const fs::path& path) {
  return " '" + path.string() + "'";
}

// An entry of a kernel, for its metadata is longer than a record's.
StoredEntry some_kernel(const fs::path& directory) {
  for (const StoredEntry& entry : DiskCache(directory, nullptr).list()) {
    if (parse_kernel_metadata(read_entry(entry.path).entry->metadata)) {
      return entry;
    }
  }
  throw std::runtime_error("no kernel");
}

}  // namespace

TEST_CASE("verify finds a good cache good") {
  const TemporaryDirectory scratch;
  fill(scratch.path());
  const CommandOutput output = run("verify", scratch.path());
  CHECK(output.exit_code == 0);
  CHECK(output.out == "6 entries, 3 of them kernels: 0 bad\n");
  CHECK(output.err.empty());
}

TEST_CASE("verify names what is cut off, renamed, or no cubin, and --repair puts it aside") {
  const TemporaryDirectory scratch;
  fill(scratch.path());
  const StoredEntry kernel = some_kernel(scratch.path());
  const CacheEntry entry = read_entry(kernel.path).entry.value();
  DiskCache(scratch.path(), nullptr)
      .put({.text = entry.key_text, .digest = kernel.digest}, entry.metadata, "no cubin");
  const fs::path renamed = kernel.path.parent_path() / std::string(30, '0');
  fs::copy_file(kernel.path, renamed);
  const auto entries = DiskCache(scratch.path(), nullptr).list();
  const StoredEntry& cut = entries.back().path == kernel.path ? entries[1] : entries.back();
  fs::resize_file(cut.path, cut.bytes - 1);
  const CommandOutput output = run("verify", scratch.path());
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, "7 entries, "));
  CHECK(holds(output.out, ": 3 bad\n"));
  CHECK(holds(output.out, kernel.digest + ": "));
  CHECK(holds(output.out, "it was renamed or copied"));
  CHECK(holds(output.out, "checksum differs"));
  const json document = json::parse(run("verify --json --repair", scratch.path()).out);
  CHECK(document.at("schema") == 1);
  REQUIRE(document.at("bad").size() == 3);
  CHECK(document.at("bad").at(0).at("repaired") == true);
  CHECK(run("verify", scratch.path()).exit_code == 0);
  CHECK(fs::exists(kernel.path.string() + ".bad"));
}

TEST_CASE("verify examines layers too, and cannot repair them") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "layer");
  const StoredEntry kernel = some_kernel(scratch.path() / "layer");
  fs::resize_file(kernel.path, kernel.bytes - 1);
  const std::string layers = " --cache-layer" + quoted(scratch.path() / "layer") +
                             " --cache-layer" + quoted(scratch.path() / "none");
  const CommandOutput output = run("verify --repair" + layers, scratch.path() / "own");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, kernel.path.string() + ", key " + kernel.digest));
  CHECK(holds(output.out, "none: cannot open the layer"));
  CHECK(fs::exists(kernel.path));
}

TEST_CASE("verify --against says which kernels of a plan are missing") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "cache");
  const std::string plan = scratch.write(
      "plan.json",
      json{{"planned", {{{"descriptor", json::parse(to_json(AttentionDescriptor{}))}}}}}.dump());
  const std::string command = "verify --arch h200 --against '" + plan + "'";
  const CommandOutput whole = run(command, scratch.path() / "cache");
  CHECK(whole.exit_code == 0);
  CHECK(holds(whole.out, "0 of the plan's 3 kernels missing"));
  const StoredEntry kernel = some_kernel(scratch.path() / "cache");
  fs::remove(kernel.path);
  const CommandOutput lacking = run(command, scratch.path() / "cache");
  CHECK(lacking.exit_code == 1);
  CHECK(holds(lacking.out, "key " + kernel.digest + ": absent"));
  const json document = json::parse(run(command + " --json", scratch.path() / "cache").out);
  CHECK(document.at("against").at("wanted") == kernels_of_a_decode);
  CHECK(document.at("against").at("missing").at(0).at("key") == kernel.digest);
  const std::string warmed = scratch.write(
      "warm.json",
      json{{"kernels", {{{"name", "a"}, {"arch", "sm_90a"}, {"key", kernel.digest}}}}}.dump());
  const CommandOutput by_key = run("verify --against '" + warmed + "'", scratch.path() / "cache");
  CHECK(by_key.exit_code == 1);
  CHECK(holds(by_key.out, "missing: a for sm_90a, key " + kernel.digest + ": absent"));
}

TEST_CASE("verify refuses a plan that is none, by its name") {
  const TemporaryDirectory scratch;
  for (const std::string text :
       {"", "{", "[]", "{}", R"({"planned": 3})", R"({"planned": [{}]})"}) {
    INFO(text);
    const std::string plan = scratch.write("plan.json", text);
    const CommandOutput output = run("verify --against '" + plan + "'", scratch.path() / "cache");
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "--against = " + plan));
    CHECK(holds(output.err, "attnjit plan"));
  }
}

TEST_CASE("gc removes what is beyond the size, and a dry run only says so") {
  const TemporaryDirectory scratch;
  fill(scratch.path());
  for (const StoredEntry& entry : DiskCache(scratch.path(), nullptr).list()) {
    fs::last_write_time(entry.path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const json dry = json::parse(run("gc --max-bytes 0 --dry-run --json", scratch.path()).out);
  CHECK(dry.at("dry_run") == true);
  CHECK(dry.at("evicted").at("count") == 6);
  CHECK(DiskCache(scratch.path(), nullptr).list().size() == 6);
  CHECK(holds(run("gc", scratch.path()).out, "removed 0 least recently used entry files"));
  const CommandOutput output = run("gc --max-bytes 0", scratch.path());
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "removed 6 least recently used entry files"));
  CHECK(holds(output.out, ": 0 entries, 0.0 MiB left"));
  const CommandOutput refused = run("gc --max-bytes 2GB", scratch.path());
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "--max-bytes = 2GB: allowed is"));
}

TEST_CASE("stats tells what the cache and its layers hold and what was had of them") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "layer");
  {
    DiskCache cache(scratch.path() / "own", nullptr);
    cache.get(CacheKeyBuilder().add("a", "b").finish());
    cache.put(CacheKeyBuilder().add("a", "b").finish(), "", "c");
  }
  const std::string layer = " --cache-layer" + quoted(scratch.path() / "layer");
  const CommandOutput output = run("stats" + layer, scratch.path() / "own");
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "own: 1 entries, 0.0 MiB, of at most 2048.0 MiB\n"));
  CHECK(holds(output.out, "layer: directory, 6 entries, "));
  CHECK(holds(output.out, "  absent          1\n"));
  const json document = json::parse(run("stats --json" + layer, scratch.path() / "own").out);
  CHECK(document.at("schema") == 1);
  CHECK(document.at("puts") == 1);
  CHECK(document.at("misses").at("absent") == 1);
  CHECK(document.at("layers").at(0).at("kind") == "directory");
  CHECK(document.at("layers").at(0).at("entries") == 6);
}

TEST_CASE("a bundle goes from one cache to another, whole or by architecture") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "cache", "h200");
  fill(scratch.path() / "cache", "a100");
  const fs::path all = scratch.path() / "all.bundle";
  const CommandOutput output = run("bundle" + quoted(all), scratch.path() / "cache");
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "all.bundle: 6 kernels, "));
  CHECK(run("bundle" + quoted(scratch.path() / "again"), scratch.path() / "cache").exit_code == 0);
  CHECK(read_file(all) == read_file(scratch.path() / "again"));

  const fs::path some = scratch.path() / "some.bundle";
  const json document =
      json::parse(run("bundle --json --arch sm_80" + quoted(some), scratch.path() / "cache").out);
  CHECK(document.at("kernels") == kernels_of_a_decode);
  CHECK(document.at("entries") == 2 * kernels_of_a_decode);
  const CommandOutput imported = run("import" + quoted(some), scratch.path() / "other");
  CHECK(imported.exit_code == 0);
  CHECK(holds(imported.out, ": 6 entries added, 0 there already, 0 bad\n"));
  CHECK(holds(run("import" + quoted(all), scratch.path() / "other").out,
              ": 6 entries added, 6 there already, 0 bad\n"));
  CHECK(holds(run("import" + quoted(scratch.path() / "cache"), scratch.path() / "other").out,
              ": 0 entries added, 12 there already, 0 bad\n"));
  CHECK(run("verify", scratch.path() / "other").exit_code == 0);
}

TEST_CASE("a damaged entry of a bundle is not imported, the others are") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "cache");
  const fs::path bundle = scratch.path() / "some.bundle";
  CHECK(run("bundle" + quoted(bundle), scratch.path() / "cache").exit_code == 0);
  fs::resize_file(bundle, fs::file_size(bundle) - 1);
  const CommandOutput output = run("import" + quoted(bundle), scratch.path() / "other");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, ": 5 entries added, 0 there already, 1 bad\n"));
  CHECK(holds(output.err, "not imported: key "));
}

TEST_CASE("what is no bundle and what holds no kernel is refused by its name") {
  const TemporaryDirectory scratch;
  const std::string text = scratch.write("text", "no bundle");
  for (const std::string command : {"import '", "mount '"}) {
    const CommandOutput output =
        run_attnjit(command + text + "'" +
                    (command == "import '" ? " --cache-dir" + quoted(scratch.path() / "c") : ""));
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, text + ": does not begin as a bundle does; fix: "));
  }
  const CommandOutput empty = run("bundle" + quoted(scratch.path() / "b"), scratch.path() / "c");
  CHECK(empty.exit_code == 2);
  CHECK(holds(empty.err, "no kernel to bundle; fix: "));
  CHECK(!fs::exists(scratch.path() / "b"));
}

TEST_CASE("mount prints the setting under which every command finds the layer") {
  const TemporaryDirectory scratch;
  fill(scratch.path() / "it's a cache");
  const CommandOutput output =
      run_attnjit("mount \"" + (scratch.path() / "it's a cache").string() + "\"");
  CHECK(output.exit_code == 0);
  CHECK(output.out ==
        "export ATTNJIT_CACHE_LAYERS='" + scratch.path().string() + "/it'\\''s a cache'\n");
  const std::string script = scratch.write(
      "script", output.out + "'" + ATTNJIT_COMMAND + "' stats --json --cache-dir" +
                    quoted(scratch.path() / "own") + " >" + quoted(scratch.path() / "stats"));
  REQUIRE(std::system(("sh '" + script + "'").c_str()) == 0);
  const json document = json::parse(read_file(scratch.path() / "stats"));
  CHECK(document.at("layers").at(0).at("entries") == 6);
}

TEST_CASE("a bundle replaces a file, and no directory, link or pipe") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  const fs::path folder = directory.path() / "folder";
  fs::create_directory(folder);
  const fs::path link = directory.path() / "link";
  fs::create_symlink("elsewhere", link);
  const fs::path pipe = directory.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const fs::path& output : {folder, link, pipe}) {
    const auto type = fs::symlink_status(output).type();
    const CommandOutput refused = run("bundle" + quoted(output), cache);
    INFO(output.string());
    CHECK(refused.exit_code == 1);
    CHECK(holds(refused.err, "output = " + output.string() + ": must be a new file"));
    CHECK(fs::symlink_status(output).type() == type);
  }
  const fs::path file = directory.write("file", "old");
  CHECK(run("bundle" + quoted(file), cache).exit_code == 0);
}

TEST_CASE("a bundle of an architecture or kernel that the cache lacks is refused by its name") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  const fs::path output = directory.path() / "out";
  CHECK(run("bundle --arch h200" + quoted(output), cache).exit_code == 0);
  for (const char* filter : {"--arch sm_90a,sm_999", "--kernel schedule_decode,nope"}) {
    const CommandOutput refused = run(fmt::format("bundle {}{}", filter, quoted(output)), cache);
    CHECK(refused.exit_code == 2);
    CHECK(holds(refused.err, "the cache has no kernel of it"));
  }
}

TEST_CASE("kernels of a mounted bundle are found by their keys") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  const fs::path bundle = directory.path() / "bundle";
  REQUIRE(run("bundle" + quoted(bundle), cache).exit_code == 0);
  const std::string key = some_kernel(cache).digest;
  const test::ScopedVariable layers("ATTNJIT_CACHE_LAYERS", bundle.string());
  const fs::path empty = directory.path() / "empty";
  for (const std::string& command :
       {"res " + key, "res --cached " + key, "show " + key, "diff " + key + " " + key}) {
    INFO(command);
    const CommandOutput output = run(command, empty);
    CHECK(output.exit_code == 0);
    CHECK(output.err.empty());
  }
  CHECK(holds(run("ls", empty).out, "3 kernels in 6 entries"));
}

TEST_CASE("verify sees what has no place in a cache, and a cache that is not there") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  fs::create_directory(cache / "v1" / "00");
  fs::create_directory(cache / "v1" / "00" / std::string(30, '0'));
  const CommandOutput output = run("verify", cache);
  CHECK(output.exit_code == 1);
  CHECK(holds(output.out, std::string(30, '0')));
  const CommandOutput missing = run("verify", directory.path() / "typo");
  CHECK(missing.exit_code == 2);
  CHECK(holds(missing.err, "is not there; fix: "));
}

TEST_CASE("gc to 0 bytes leaves nothing, also of what was just used") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache";
  fill(cache);
  CHECK(run("gc --max-bytes 0", cache).exit_code == 0);
  CHECK(DiskCache(cache, nullptr).list().empty());
}

TEST_CASE("a directory that others can write is not cleaned, repaired or filled") {
  const TemporaryDirectory scratch;
  fill(scratch.path());
  fs::permissions(scratch.path(), fs::perms(0777));
  for (const std::string& command :
       {std::string("gc"), std::string("verify --repair"), "import" + quoted(scratch.path())}) {
    INFO(command);
    const CommandOutput output = run(command, scratch.path());
    CHECK(output.exit_code != 0);
    CHECK(holds(output.err, "chmod "));
  }
  CHECK(holds(run("stats", scratch.path()).out, "not used: "));
}

}  // namespace attnjit
