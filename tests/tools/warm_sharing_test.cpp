// Workers of `attnjit warm` under a memory limit, and beside another process that makes the same
// kernels. The compiler is fake_nvrtc.cpp.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "child_command.hpp"
#include "command_line.hpp"
#include "fake_warm.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

using test::check_completes;
using test::FakeWarm;
using test::holds;
using test::model_kernels;

// Whether the entry of `key` is a kernel's, not the record of a toolchain.
bool is_kernel(const CacheKey& key) {
  return parse_kernel_key_text(key.text).has_value();
}

}  // namespace

TEST_CASE("process-parallel warm: a memory limit under which no worker starts is named as that") {
  const FakeWarm warm;
  int refused = 0;
  for (const int megabytes : {1, 10, 30, 60, 100, 150, 4000}) {
    const CommandOutput output = warm.run(fmt::format("-j 1 --force --memory-limit {}", megabytes));
    INFO(megabytes << ": " << output.err);
    CHECK((output.exit_code == 0 || output.exit_code == 2));
    if (output.exit_code != 0) {
      ++refused;
      CHECK(
          holds(output.err, fmt::format("--memory-limit = {}: so many MB are too few", megabytes)));
      CHECK(holds(output.err, "; fix: "));
    }
    CHECK(!holds(output.err, "crashed"));
  }
  CHECK(refused >= 2);
  CHECK(warm.run("--force --memory-limit 4000").exit_code == 0);
  // What is wrong without a limit too is not the limit's fault.
  const CommandOutput none =
      run_attnjit("warm '{}' --memory-limit 4000 --nvrtc /none --cache-dir '" +
                  (warm.cache() / "other").string() + "'");
  CHECK(none.exit_code == 5);
  CHECK(!holds(none.err, "--memory-limit"));
}

TEST_CASE("process-parallel warm: a job that ends its worker under a limit names the limit too") {
  const FakeWarm warm("crash:combine_splits");
  const CommandOutput output = warm.run("-j 1 --memory-limit 4000");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, "--memory-limit = 4000: so many MB may be too few for this kernel"));
}

TEST_CASE(
    "process-parallel warm: a kernel that another process makes is taken last, and waited for") {
  const FakeWarm warm;
  std::vector<CacheKey> keys;
  std::map<std::string, int> stripes;  // kernels of a lock
  {
    const FakeWarm other;  // says which keys there are
    REQUIRE(other.run("-j 1").exit_code == 0);
    for (const StoredEntry& entry : DiskCache(other.cache(), nullptr).list()) {
      const CacheKey key = key_of_text(read_entry(entry.path).entry->key_text);
      if (is_kernel(key)) {
        keys.push_back(key);
        ++stripes[key.digest.substr(0, 2)];
      }
    }
  }
  std::filesystem::create_directories(warm.cache());
  std::filesystem::permissions(warm.cache(), std::filesystem::perms(0700));
  const DiskCache cache(warm.cache(), nullptr);
  const auto kernels = [&] { return warm.compiles().size(); };
  pid_t child = 0;
  {
    // Two of them are made elsewhere.
    std::vector<KeyLock> locks;
    for (const CacheKey& key : keys) {
      if (locks.size() < 2 && stripes[key.digest.substr(0, 2)] == 1) {
        locks.push_back(cache.lock(key, {}));
        REQUIRE(locks.back().is_held());
      }
    }
    REQUIRE(locks.size() == 2);
    child = start_attnjit(warm.words("-j 1"));
    CHECK(wait_until([&] { return kernels() >= model_kernels - 2; }));
    CHECK(kernels() == model_kernels - 2);
  }
  CHECK(wait_for_attnjit(child) == 0);
  CHECK(kernels() == model_kernels);
  check_completes(warm);
}

}  // namespace attnjit
