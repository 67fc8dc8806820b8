// KernelProvider on caches that change under it, that many share, and that have layers.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/cache_statistics.hpp"
#include "attnjit/kernel_provider.hpp"
#include "catch.hpp"
#include "sample_kernels.hpp"

using namespace attnjit;
using namespace attnjit::test;

namespace fs = std::filesystem;

namespace {

// Makes a cubin by hand, and does what it is told while it does.
class FakeCompiler final : public KernelCompiler {
 public:
  explicit FakeCompiler(std::function<void()> meanwhile = [] {})
      : meanwhile_(std::move(meanwhile)) {}

  std::string toolchain_identity() const override { return "nvrtc 13.0 fake"; }

  CompiledKernel compile(const RenderedKernel& kernel, const CacheKey&) const override {
    meanwhile_();
    return {.cubin = sample_cubin(90, kernel.entry),
            .log = "",
            .resources = {},
            .notes = {},
            .milliseconds = 250};
  }

 private:
  std::function<void()> meanwhile_;
};

struct Watched {
  std::vector<std::string> warnings;
  KernelProviderOptions options;

  explicit Watched(const fs::path& directory) {
    options.cache_directory = directory;
    options.warn = [this](std::string_view warning) { warnings.emplace_back(warning); };
  }
};

// Provides a kernel while `ruin` spoils the cache directory between look-up and publishing.
void check_own_bytes_win(const fs::path& root, const std::function<void()>& ruin) {
  Watched watched(root);
  KernelProvider provider(watched.options, std::make_shared<FakeCompiler>(ruin));
  const ProvidedKernel provided = provider.provide(sample_kernel());
  CHECK(provided.cubin == sample_cubin(90, "sample_entry"));
  CHECK(provided.miss.has_value());
  CHECK(watched.warnings.size() <= 1);
  CHECK(provider.provide(sample_kernel()).cubin == provided.cubin);
  CHECK(watched.warnings.size() <= 1);
}

}  // namespace

TEST_CASE("own bytes win: the directory is removed, spoiled or opened to all during the compile") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  const auto remake = [&] {
    fs::remove_all(root);
    fs::create_directory(root);
    fs::permissions(root, fs::perms(0700));
  };
  remake();
  check_own_bytes_win(root, [&] { fs::remove_all(root); });
  remake();
  check_own_bytes_win(root, [&] { fs::permissions(root, fs::perms(0500)); });
  remake();
  check_own_bytes_win(root, [&] {
    fs::remove_all(root);
    write_text(root, "a file in its place");
  });
  fs::remove(root);
  remake();
  check_own_bytes_win(root, [&] {
    fs::remove_all(root / "v1");
    write_text(root / "v1", "a file in the tree's place");
  });
  remake();
  check_own_bytes_win(root, [&] { fs::permissions(root, fs::perms(0777)); });
}

TEST_CASE("single flight: sixteen processes of sixteen threads compile one kernel once") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  const fs::path compiled = scratch.path() / "compiled";
  std::vector<pid_t> children;
  for (int process = 0; process < 16; ++process) {
    children.push_back(start_child([&] {
      Watched watched(root);
      KernelProvider provider(watched.options, std::make_shared<FakeCompiler>([&] {
                                std::ofstream(compiled, std::ios::app) << "x";
                                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                              }));
      std::atomic<int> wrong = 0;
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 16; ++thread) {
        threads.emplace_back([&] {
          const std::string cubin = provider.provide(sample_kernel()).cubin;
          wrong += cubin == sample_cubin(90, "sample_entry") ? 0 : 1;
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      return wrong.load();
    }));
  }
  for (const pid_t child : children) {
    CHECK(wait_for_child(child) == 0);
  }
  CHECK(read_text(compiled) == "x");
}

// Its locks go with it, so that the next one does not wait for it.
TEST_CASE("shutdown: a process that exits during a compile ends at once and leaves no entry") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = start_child([&]() -> int {
    Watched watched(root);
    std::atomic<bool> is_compiling = false;
    KernelProvider provider(watched.options, std::make_shared<FakeCompiler>([&] {
                              is_compiling = true;
                              std::this_thread::sleep_for(std::chrono::seconds(60));
                            }));
    std::thread compiling([&] { provider.provide(sample_kernel()); });
    while (!is_compiling) {
      std::this_thread::yield();
    }
    std::exit(0);
  });
  CHECK(wait_for_child(child) == 0);
  Watched watched(root);
  KernelProvider provider(watched.options, std::make_shared<FakeCompiler>());
  CHECK(provider.provide(sample_kernel()).miss == MissReason::absent);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(50));
  CHECK(watched.warnings.empty());
}

TEST_CASE("layers and bundles: a provider serves a kernel out of a layer, without compiling it") {
  const ScratchDirectory scratch;
  Watched made(scratch.path() / "layer");
  KernelProvider(made.options, std::make_shared<FakeCompiler>()).provide(sample_kernel());
  Watched watched(scratch.path() / "own");
  watched.options.cache_layers = {scratch.path() / "layer"};
  watched.options.jit = JitPolicy::forbidden;
  KernelProvider provider(watched.options);
  CHECK(!provider.provide(sample_kernel()).miss);
  CHECK(provider.cache().list().empty());
  CHECK(watched.warnings.empty());
}

TEST_CASE("observability: a compile counts one miss and one put, a hit the time it saved") {
  const ScratchDirectory scratch;
  Watched watched(scratch.path());
  {
    KernelProvider provider(watched.options, std::make_shared<FakeCompiler>());
    provider.provide(sample_kernel());
    provider.provide(sample_kernel());
    provider.provide(sample_kernel());
  }
  const CacheStatistics statistics = read_statistics(scratch.path());
  CHECK(statistics.misses[static_cast<std::size_t>(MissReason::absent)] == 1);
  CHECK(statistics.puts == 2);  // the kernel, and the record of its toolchain
  CHECK(statistics.hits == 2);
  CHECK(statistics.saved_microseconds == 500'000);
}
