// show, res, why and diff on caches that are written here without a compiler.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"
#include "filled_cache.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Without a compiler, so that kernels are those of the toolchain on record.
std::string in_cache(const fs::path& directory) {
  return " --nvrtc /nonexistent --cache-dir '" + directory.string() + "'";
}

json document_of(const std::string& arguments, int exit_code = 0) {
  const CommandOutput output = run_attnjit(arguments + " --json");
  INFO(output.err);
  REQUIRE(output.exit_code == exit_code);
  json document = json::parse(output.out);
  CHECK(document.at("schema") == 1);
  return document;
}

}  // namespace

TEST_CASE("show tells all that an entry holds, by its key or by the descriptor") {
  const TemporaryDirectory directory;
  const auto keys = test::fill_cache(directory.path());
  const std::string by_key =
      run_attnjit("show " + keys.front().digest.substr(0, 12) + in_cache(directory.path())).out;
  for (const std::string part :
       {"kernel          paged_decode_sm80", "target          sm_90a",
        "toolchain       nvrtc 13.0 of a test", "--gpu-architecture=sm_90a", "registers       168",
        "cubin bytes     5", "  head_dim_qk = 128", "  header device/mma_sm80.cuh", " ago"}) {
    INFO(part);
    CHECK(holds(by_key, part));
  }
  CHECK(run_attnjit("show '{}' --kernel attention --arch h200" + in_cache(directory.path()))
            .exit_code == 1);  // its cubin is none, so it is no hit
}

TEST_CASE("show as JSON has the path, the sections and the resources") {
  const TemporaryDirectory directory;
  const auto keys = test::fill_cache(directory.path());
  const json document = document_of("show " + keys.front().digest + in_cache(directory.path()));
  const json& entry = document.at("entries").at(0);
  CHECK(entry.at("key") == keys.front().digest);
  CHECK(entry.at("registers") == 168);
  CHECK(entry.at("config").at("head_dim_qk") == 128);
  CHECK(fs::exists(entry.at("path").get<std::string>()));
  CHECK(entry.at("key_sections").at(0).at("tag") == "schema");
  CHECK(entry.at("occupancy").at("most_warps_per_sm") == 64);
}

TEST_CASE("res lists what the cache holds, and fails on spills where asked") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const CommandOutput output = run_attnjit("res" + in_cache(directory.path()));
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "warps/SM"));
  CHECK(holds(output.out, "paged_decode_sm80  sm_90a        168"));
  CHECK(run_attnjit("res --fail-on-spill" + in_cache(directory.path())).exit_code == 0);
  CHECK(document_of("res" + in_cache(directory.path())).at("kernels").size() == 3);
  CHECK(document_of("res --arch a100" + in_cache(directory.path())).at("kernels").empty());

  test::fill_cache(directory.path(), "nvrtc 12.8 of a test", 16);
  CHECK(run_attnjit("res" + in_cache(directory.path())).exit_code == 0);
  const CommandOutput spills = run_attnjit("res --fail-on-spill" + in_cache(directory.path()));
  CHECK(spills.exit_code == 1);
  CHECK(holds(spills.err, "3 kernels spill registers"));
}

TEST_CASE("res --cached names what is missing and fails") {
  const TemporaryDirectory directory;
  const CommandOutput output =
      run_attnjit("res '{}' --arch h200 --cached" + in_cache(directory.path()));
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, "paged_decode_sm80 for sm_90a is not in the cache (absent)"));
  CHECK(run_attnjit("res --layer 1" + in_cache(directory.path())).exit_code == 2);
}

TEST_CASE("why says key, place and reason, and which near entry differs in what") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const CommandOutput output =
      run_attnjit("why '{\"head_dim_qk\": 64, \"head_dim_v\": 64}' --kernel attention --arch h200" +
                  in_cache(directory.path()));
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "paged_decode_sm80 for sm_90a: miss (absent)"));
  CHECK(holds(output.out, "none, so no entry can be found"));
  CHECK(holds(output.out, "probed     " + directory.path().string()));
  CHECK(holds(output.out, "config head_dim_qk: 64, there 128"));
  const json document =
      document_of("why '{\"head_dim_qk\": 64, \"head_dim_v\": 64}' --kernel attention --arch h200" +
                  in_cache(directory.path()));
  const json& kernel = document.at("kernels").at(0);
  CHECK(kernel.at("hit") == false);
  CHECK(kernel.at("reason") == "absent");
  CHECK(kernel.at("near").size() == 1);
}

TEST_CASE("why prints the text of one key") {
  const TemporaryDirectory directory;
  const auto keys = test::fill_cache(directory.path());
  const std::string arguments = "why '{}' --arch h200 --key-text" + in_cache(directory.path());
  CHECK(run_attnjit(arguments).exit_code == 2);
  const CommandOutput output = run_attnjit(arguments + " --kernel attention");
  CHECK(output.exit_code == 0);
  CHECK(output.out == keys.front().text);
}

TEST_CASE("diff finds both sides before it compiles one") {
  const TemporaryDirectory directory;
  for (const std::string sides : {"'{}' nosuch", "nosuch '{}'", "'{}' 0123456789abcdef"}) {
    const CommandOutput output =
        run_attnjit("diff " + sides + " --arch h200 --nvrtc /none --cache-dir '" +
                    directory.path().string() + "'");
    INFO(output.err);
    CHECK(output.exit_code == 2);
    CHECK(output.err.find("compil") == std::string::npos);
  }
}

TEST_CASE("diff of two entries tells toolchain, config and source side by side") {
  const TemporaryDirectory directory;
  const auto keys = test::fill_cache(directory.path());
  const auto others = test::fill_cache(directory.path(), "nvrtc 12.8 of a test", 16);
  const std::string arguments = "diff " + keys.front().digest + " " + others.front().digest +
                                " --cached" + in_cache(directory.path());
  const CommandOutput output = run_attnjit(arguments);
  INFO(output.err);
  CHECK(output.exit_code == 0);
  CHECK(holds(output.out, "toolchain"));
  CHECK(holds(output.out, "the sources are equal"));
  const json document = document_of(arguments);
  CHECK(document.at("equal") == false);
  CHECK(document.at("a").at("spill_store_bytes") == 0);
  CHECK(document.at("b").at("spill_store_bytes") == 16);

  const CommandOutput configs =
      run_attnjit("diff '{}' '{\"head_dim_qk\": 64, \"head_dim_v\": 64}' --arch h200 --cached" +
                  in_cache(directory.path()));
  CHECK(configs.exit_code == 0);
  CHECK(holds(configs.out, "config head_dim_qk"));
  CHECK(holds(configs.out, "-constexpr int head_dim_qk = 128;"));
  CHECK(holds(configs.out, "+constexpr int head_dim_qk = 64;"));
}

TEST_CASE("a directory, a link and a pipe in an entry's place are damaged entries") {
  const TemporaryDirectory directory;
  const auto keys = test::fill_cache(directory.path());
  const auto entries = DiskCache(directory.path(), nullptr).list();
  for (std::size_t i = 0; i < 3; ++i) {
    fs::remove(entries.at(i).path);
  }
  fs::create_directory(entries.at(0).path);
  fs::create_symlink(entries.at(4).path, entries.at(1).path);
  REQUIRE(mkfifo(entries.at(2).path.c_str(), 0600) == 0);
  const json document = document_of("ls --cache-dir '" + directory.path().string() + "'", 1);
  CHECK(document.at("damaged").size() == 3);
  CHECK(document.at("num_entries") == entries.size());
  for (const json& damaged : document.at("damaged")) {
    CHECK(damaged.at("reason") == "unreadable");
  }
}

TEST_CASE("ls and doctor count the same entries") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const auto entries = DiskCache(directory.path(), nullptr).list();
  fs::remove(entries.front().path);
  fs::create_directory(entries.front().path);
  const std::string place = " --cache-dir '" + directory.path().string() + "'";
  const std::string count = std::to_string(entries.size()) + " entries, 0.";
  CHECK(holds(run_attnjit("ls" + place).out, " in " + count));
  CHECK(holds(run_attnjit("doctor" + place).out, ": " + count));
}

TEST_CASE("a cache directory whose name is no UTF-8 can be had back from JSON") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "a\xff";
  test::fill_cache(cache);
  const json document = document_of("ls --cache-dir '" + cache.string() + "'");
  CHECK(document.at("kernels").size() == 3);
  CHECK(document.at("kernels").at(0).at("config").is_object());
  CHECK(document.at("cache_directory") == directory.path().string() + "/a\\xff");
  CHECK(document.at("cache_directory_hex").get<std::string>().ends_with("2f61ff"));
}

}  // namespace attnjit
