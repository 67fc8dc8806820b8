#include "attnjit/kernel_provider.hpp"

#include "../cache/scratch_directory.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "sample_kernels.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

using namespace attnjit;
using namespace attnjit::test;

namespace fs = std::filesystem;

namespace {

// Counts its compiles and makes a cubin by hand; can be held inside a compile.
class CountingCompiler final : public KernelCompiler {
 public:
  explicit CountingCompiler(std::string identity = "nvrtc 13.0 counting")
      : identity_(std::move(identity)) {}

  std::string toolchain_identity() const override { return identity_; }

  CompiledKernel compile(const RenderedKernel& kernel, const CacheKey&) const override {
    ++compiles;
    std::this_thread::sleep_for(duration);
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return kernel.entry != held_entry_; });
    if (fails) {
      throw CompileError("told to fail");
    }
    return {.cubin = sample_cubin(90, kernel.entry),
            .log = "",
            .resources = {.registers = 168},
            .notes = {"(C7510)"},
            .milliseconds = 12.5};
  }

  void hold(const std::string& entry) {
    const std::lock_guard lock(mutex_);
    held_entry_ = entry;
    released_.notify_all();
  }

  mutable std::atomic<int> compiles = 0;
  std::atomic<bool> fails = false;
  std::chrono::milliseconds duration{0};

 private:
  std::string identity_;
  mutable std::mutex mutex_;
  mutable std::condition_variable released_;
  std::string held_entry_;
};

KernelProviderOptions options_for(const fs::path& directory) {
  return {.templates = {},
          .cache_directory = directory,
          .nvrtc = {},
          .jit = JitPolicy::allowed,
          .on_miss = {},
          .warn = [](std::string_view) {},
          .on_wait = {},
          .miss_trace = {}};
}

fs::path entry_of(const KernelProvider& provider, const std::string& digest) {
  for (const StoredEntry& entry : provider.cache().list()) {
    if (entry.digest == digest) {
      return entry.path;
    }
  }
  throw std::runtime_error("no entry " + digest);
}

void wait_for_compiles(const CountingCompiler& compiler, int count) {
  while (compiler.compiles < count) {
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("the second request for a kernel is served from the cache without a compile") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  const ProvidedKernel first = provider.provide(sample_kernel());
  const ProvidedKernel second = provider.provide(sample_kernel());
  CHECK(compiler->compiles == 1);
  CHECK(first.miss == MissReason::absent);
  CHECK(!second.miss);
  CHECK(second.cubin == first.cubin);
  CHECK(second.key == first.key);
  CHECK(second.metadata == first.metadata);
  CHECK(second.metadata.resources.registers == 168);
  CHECK(second.metadata.notes == std::vector<std::string>{"(C7510)"});
  CHECK(second.metadata.num_threads == 128);
}

TEST_CASE("a damaged toolchain record is written again by the next hit, with a compiler") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  provider.provide(sample_kernel());
  const std::string digest = make_toolchain_record_key(sample_kernel()).digest;
  const fs::path record = entry_of(provider, digest);
  for (const std::uintmax_t size : {std::uintmax_t{0}, fs::file_size(record) - 1}) {
    fs::resize_file(record, size);
    CHECK(!read_entry(record).entry);
    CHECK(!provider.provide(sample_kernel()).miss);
    REQUIRE(read_entry(record).entry);
    CHECK(read_entry(record).entry->payload == compiler->toolchain_identity());
  }
  fs::remove(record);  // absent: left so, for a cache that cannot be written
  CHECK(!provider.provide(sample_kernel()).miss);
  CHECK(!fs::exists(record));
  CHECK(compiler->compiles == 1);
}

TEST_CASE("processes that share a cache compile a kernel once between them") {
  const ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process) {
    children.push_back(start_child([&] {
      const auto compiler = std::make_shared<CountingCompiler>();
      compiler->duration = std::chrono::milliseconds(50);  // long enough for all to arrive
      KernelProvider provider(options_for(scratch.path()), compiler);
      provider.provide(sample_kernel());
      return compiler->compiles.load();
    }));
  }
  int compiles = 0;
  for (const pid_t child : children) {
    compiles += wait_for_child(child);
  }
  CHECK(compiles == 1);
}

TEST_CASE("a config is rendered for the device before it is looked up") {
  const ScratchDirectory scratch;
  KernelProvider provider(options_for(scratch.path()), std::make_shared<CountingCompiler>());
  const ProvidedKernel provided = provider.provide(
      ScheduleConfig{.block_n = 64, .num_threads = 256, .piece_units = 100, .block_percent = 90},
      find_target_device("h200").value());
  CHECK(provided.kernel.arch == "sm_90a");
  CHECK(provided.metadata.entry == provided.kernel.entry);
}

TEST_CASE("a miss is reported with its kernel, key and reason; a hit is not") {
  const ScratchDirectory scratch;
  KernelProviderOptions options = options_for(scratch.path());
  std::vector<std::string> seen;
  options.on_miss = [&](const MissEvent& event) {
    seen.push_back(event.kernel.name + " " + event.key.digest + " " +
                   std::string(to_string(event.reason)));
  };
  KernelProvider provider(options, std::make_shared<CountingCompiler>());
  const ProvidedKernel provided = provider.provide(sample_kernel());
  provider.provide(sample_kernel());
  CHECK(seen == std::vector<std::string>{"sample " + provided.key.digest + " absent"});
}

TEST_CASE("a damaged entry is compiled again and repaired") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  const ProvidedKernel first = provider.provide(sample_kernel());
  const fs::path path = entry_of(provider, first.key.digest);
  fs::resize_file(path, fs::file_size(path) - 1);
  CHECK(provider.provide(sample_kernel()).miss == MissReason::corrupt);
  CHECK(!provider.provide(sample_kernel()).miss);
  CHECK(compiler->compiles == 2);
}

TEST_CASE("a whole entry whose cubin is for another architecture is a miss") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  const ProvidedKernel first = provider.provide(sample_kernel());
  DiskCache cache(scratch.path(), {});
  REQUIRE(cache.put(first.key, to_json(first.metadata), sample_cubin(80, first.kernel.entry)));
  const ProvidedKernel second = provider.provide(sample_kernel());
  CHECK(second.miss == MissReason::corrupt);
  CHECK(second.cubin == first.cubin);
}

TEST_CASE("with compiling forbidden a kernel comes from the cache, whatever toolchain made it") {
  const ScratchDirectory scratch;
  const auto maker = std::make_shared<CountingCompiler>("nvrtc 12.4 other machine");
  const ProvidedKernel made =
      KernelProvider(options_for(scratch.path()), maker).provide(sample_kernel());
  KernelProviderOptions options = options_for(scratch.path());
  options.jit = JitPolicy::forbidden;
  KernelProvider provider(options);
  const ProvidedKernel found = provider.provide(sample_kernel());
  CHECK(!found.miss);
  CHECK(found.key == made.key);
  CHECK(found.metadata.toolchain == "nvrtc 12.4 other machine");
}

TEST_CASE("with compiling forbidden a missing kernel is an error that names key and reason") {
  const ScratchDirectory scratch;
  KernelProviderOptions options = options_for(scratch.path());
  options.jit = JitPolicy::forbidden;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options, compiler);
  try {
    provider.provide(sample_kernel());
    FAIL("nothing was thrown");
  } catch (const MissingKernelError& error) {
    CHECK(error.reason() == MissReason::absent);
    CHECK(contains(error.what(), error.key_digest()));
    CHECK(contains(error.what(), "kernel sample for sm_90a"));
    CHECK(contains(error.what(), "attnjit warm"));
  }
  CHECK(compiler->compiles == 0);
}

TEST_CASE("without a compiler hits are served and a miss explains what was tried") {
  const ScratchDirectory scratch;
  KernelProvider(options_for(scratch.path()), std::make_shared<CountingCompiler>())
      .provide(sample_kernel());
  KernelProviderOptions options = options_for(scratch.path());
  options.nvrtc = "/nonexistent/libnvrtc.so.13";
  KernelProvider provider(options);
  CHECK(!provider.provide(sample_kernel()).miss);
  const std::string message =
      message_of<ToolchainError>([&] { provider.provide(sample_kernel("sm_90")); });
  CHECK(contains(message, "/nonexistent/libnvrtc.so.13: no such file or directory"));
}

TEST_CASE("a toolchain never gets another toolchain's cubin while it can compile") {
  const ScratchDirectory scratch;
  const auto first = std::make_shared<CountingCompiler>("nvrtc 13.0 first");
  const auto second = std::make_shared<CountingCompiler>("nvrtc 13.0 second");
  KernelProvider(options_for(scratch.path()), first).provide(sample_kernel());
  CHECK(KernelProvider(options_for(scratch.path()), second).provide(sample_kernel()).miss);
  CHECK(!KernelProvider(options_for(scratch.path()), first).provide(sample_kernel()).miss);
}

TEST_CASE("a kernel is compiled and usable where nothing can be stored") {
  const ScratchDirectory scratch;
  write_text(scratch.path() / "file", "");
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path() / "file"), compiler);
  CHECK(!provider.provide(sample_kernel()).cubin.empty());
}

TEST_CASE("eight threads that want one kernel compile it once and get the same bytes") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  compiler->hold("sample_entry");
  std::vector<std::thread> threads;
  std::vector<std::string> cubins(8);
  for (std::string& cubin : cubins) {
    threads.emplace_back([&] { cubin = provider.provide(sample_kernel()).cubin; });
  }
  wait_for_compiles(*compiler, 1);
  compiler->hold("");
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(compiler->compiles == 1);
  CHECK(cubins == std::vector<std::string>(8, sample_cubin(90, "sample_entry")));
}

TEST_CASE("while one kernel compiles, others are served and compiled") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  RenderedKernel warm = sample_kernel();
  warm.entry = "warm_entry";
  provider.provide(warm);
  compiler->hold("sample_entry");
  std::thread slow([&] { provider.provide(sample_kernel()); });
  wait_for_compiles(*compiler, 2);
  CHECK(!provider.provide(warm).miss);
  RenderedKernel cold = sample_kernel();
  cold.entry = "cold_entry";
  CHECK(provider.provide(cold).miss);
  compiler->hold("");
  slow.join();
}

TEST_CASE(
    "good errors: a failed compile is remembered by the process, not on disk, and by its key") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  KernelProvider provider(options_for(scratch.path()), compiler);
  compiler->fails = true;
  CHECK_THROWS_AS(provider.provide(sample_kernel()), CompileError);
  compiler->fails = false;
  CHECK_THROWS_AS(provider.provide(sample_kernel()), CompileError);
  CHECK(compiler->compiles == 1);
  RenderedKernel other = sample_kernel();
  other.entry = "other_entry";
  CHECK(provider.provide(other).miss == MissReason::absent);

  KernelProvider next_process(options_for(scratch.path()), compiler);
  CHECK(next_process.provide(sample_kernel()).miss == MissReason::absent);
  CHECK_FALSE(provider.provide(sample_kernel()).miss);
}

TEST_CASE("good errors: a failed compile says where its source was saved, or why it was not") {
  const ScratchDirectory scratch;
  const auto compiler = std::make_shared<CountingCompiler>();
  compiler->fails = true;
  const auto message_of = [&](const fs::path& directory) {
    KernelProvider provider(options_for(directory), compiler);
    try {
      provider.provide(sample_kernel());
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string saved = message_of(scratch.path());
  CHECK(saved.starts_with("told to fail"));
  const fs::path folder = scratch.path() / "failed";
  REQUIRE(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  const fs::path source = fs::directory_iterator(folder)->path();
  CHECK(saved.find("source: " + source.string()) != std::string::npos);
  CHECK(read_text(source) == flatten(sample_kernel()));

  const fs::path blocked = scratch.path() / "blocked";
  write_text(blocked, "");
  CHECK(message_of(blocked).find("source: not saved: " + blocked.string()) != std::string::npos);
}

TEST_CASE("metadata comes back from its JSON, and nothing else is taken for it") {
  CompiledKernel compiled;
  compiled.resources = {.registers = 1,
                        .barriers = 2,
                        .stack_frame_bytes = 3,
                        .spill_store_bytes = 4,
                        .spill_load_bytes = 5,
                        .static_shared_bytes = 6};
  compiled.notes = {"a", "b"};
  compiled.milliseconds = 1.25;
  const KernelMetadata metadata = describe(sample_kernel(), compiled, "nvrtc 13.0 \xff");
  const auto parsed = parse_kernel_metadata(to_json(metadata));
  REQUIRE(parsed);
  CHECK(parsed->resources == metadata.resources);
  CHECK(parsed->notes == metadata.notes);
  CHECK(parsed->config == metadata.config);
  CHECK(!contains(to_json(metadata), "\n"));
  RenderedKernel other = sample_kernel();
  other.config = "no JSON";
  CHECK(parse_kernel_metadata(to_json(describe(other, compiled, "")))->config == "no JSON");
  CHECK(!parse_kernel_metadata(R"({"record": "toolchain"})"));
  CHECK(!parse_kernel_metadata("not JSON"));
}
