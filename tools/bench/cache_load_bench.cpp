// Microseconds of DiskCache::get: a hit of 100 KB (about the size of a cubin), a miss on disk, and
// a miss without a directory. Files are in the page cache, as on any start but a machine's first.
//   attnjit_cache_load_bench [directory for a scratch cache, default the temporary directory]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "attnjit/disk_cache.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::size_t payload_bytes = 100'000;
constexpr std::size_t source_bytes = 40'000;  // of the rendered source in the key
constexpr int warm_up_rounds = 200;
constexpr int measured_rounds = 5000;

std::string filler(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i * 2654435761U) >> 13);
  }
  return bytes;
}

void measure(const char* name, const std::function<void()>& operation) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> microseconds;
  for (int round = 0; round < warm_up_rounds + measured_rounds; ++round) {
    const auto begin = Clock::now();
    operation();
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
    if (round >= warm_up_rounds) {
      microseconds.push_back(elapsed.count());
    }
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("%-28s %10.2f %10.2f %10.2f\n", name, microseconds[microseconds.size() / 2],
              microseconds.front(), microseconds[microseconds.size() * 99 / 100]);
}

void expect(bool condition, const char* what) {
  if (!condition) {
    throw std::runtime_error(std::string("cache_load_bench: unexpected: ") + what);
  }
}

void measure_all(const fs::path& root) {
  using attnjit::CacheKeyBuilder;
  using attnjit::DiskCache;
  const std::string source = filler(source_bytes);
  const auto stored = CacheKeyBuilder().add("source", source).finish();
  const auto other = CacheKeyBuilder().add("source", source + "x").finish();
  DiskCache cache(root, nullptr);
  const DiskCache memory_only(std::nullopt, nullptr);
  expect(cache.put(stored, R"({"registers":168})", filler(payload_bytes)), "put failed");

  std::printf("%-28s %10s %10s %10s\n", "DiskCache::get, microseconds", "median", "min", "p99");
  measure("hit, 100 KB payload",
          [&] { expect(cache.get(stored).entry.has_value(), "a miss of what was put"); });
  measure("miss, no such entry",
          [&] { expect(!cache.get(other).entry, "a hit of what was not put"); });
  measure("miss, memory only",
          [&] { expect(!memory_only.get(stored).entry, "a hit without a directory"); });
  measure("key of a 40 KB source",
          [&] { expect(CacheKeyBuilder().add("source", source).finish() == stored, "key"); });
}

}  // namespace

int main(int argument_count, char** arguments) {
  const fs::path parent = argument_count > 1 ? fs::path(arguments[1]) : fs::temp_directory_path();
  std::string root = (parent / "attnjit-bench-XXXXXX").string();
  if (::mkdtemp(root.data()) == nullptr) {
    std::fprintf(stderr, "cannot make a directory in %s\n", parent.c_str());
    return EXIT_FAILURE;
  }
  int status = EXIT_SUCCESS;
  try {
    measure_all(root);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = EXIT_FAILURE;
  }
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return status;
}
