// attnjit ls, on caches that are written here without a compiler.
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "command_line.hpp"
#include "filled_cache.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string toolchain = "nvrtc 13.0 of a test";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

CommandOutput ls(const fs::path& directory, const std::string& options = "") {
  return run_attnjit("ls " + options + " --cache-dir '" + directory.string() + "'");
}

TEST_CASE("ls lists every kernel once, with its key and config") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const CommandOutput output = ls(directory.path());
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(holds(output.out, "\npaged_decode_sm80  sm_90a "));
  CHECK(holds(output.out, "168"));
  CHECK(holds(output.out, "  dtype=bf16 head_dim_qk=128 "));
  CHECK(holds(output.out, directory.path().string() + ": 3 kernels in 6 entries, "));
}

TEST_CASE("ls as JSON holds what can be looked up") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const json document = json::parse(ls(directory.path(), "--json").out);
  CHECK(document.at("schema") == 1);
  REQUIRE(document.at("kernels").size() == 3);
  CHECK(document.at("damaged").empty());
  for (const json& kernel : document.at("kernels")) {
    CHECK(kernel.at("toolchain") == toolchain);
    CHECK(kernel.at("cubin_bytes") == 5);
    const CommandOutput source =
        run_attnjit("src " + kernel.at("key").get<std::string>() + " --stage config --cache-dir '" +
                    directory.path().string() + "'");
    CHECK(source.exit_code == 0);
  }
}

TEST_CASE("an empty or absent cache holds no kernels") {
  const TemporaryDirectory directory;
  for (const fs::path& path : {directory.path(), directory.path() / "absent"}) {
    const CommandOutput output = ls(path);
    CHECK(output.exit_code == 0);
    CHECK(output.out == path.string() + ": 0 kernels in 0 entries, 0.0 MiB\n");
  }
  CHECK(!fs::exists(directory.path() / "absent"));
}

TEST_CASE("what is no directory is refused, not taken for an empty cache") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "text";
  const CommandOutput output = ls(directory.path() / "file");
  CHECK(output.exit_code == 2);
  CHECK(output.out.empty());
  CHECK(holds(output.err, "file: is no directory; fix: name one that is"));
}

TEST_CASE("a damaged entry is named with its reason, and ls fails") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  const auto entries = DiskCache(directory.path(), nullptr).list();
  fs::resize_file(entries.front().path, entries.front().bytes - 1);
  const CommandOutput output = ls(directory.path());
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, "damaged (corrupt): " + entries.front().path.string()));
  CHECK(holds(output.err, "fix: run `attnjit warm` again"));
  const json document = json::parse(ls(directory.path(), "--json").out);
  REQUIRE(document.at("damaged").size() == 1);
  CHECK(document.at("damaged").at(0).at("key") == entries.front().digest);
}

}  // namespace
}  // namespace attnjit
