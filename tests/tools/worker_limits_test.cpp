#include "worker_limits.hpp"

#include <fstream>
#include <string>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

constexpr std::uint64_t megabyte = 1'000'000;

// A root directory with files of /proc and /sys.
class FakeRoot {
 public:
  FakeRoot& file(const std::string& path, const std::string& text) {
    const std::filesystem::path where = directory_.path() / path;
    std::filesystem::create_directories(where.parent_path());
    std::ofstream(where) << text;
    return *this;
  }
  MachineShare share() const { return read_machine_share(directory_.path()); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("workers are as many as cores and free memory allow, and at least one") {
  CHECK(workers_that_fit({.cores = 8, .memory_bytes = 64'000 * megabyte}) == 8);
  CHECK(workers_that_fit({.cores = 8, .memory_bytes = 1'300 * megabyte}) == 3);
  CHECK(workers_that_fit({.cores = 8, .memory_bytes = 10 * megabyte}) == 1);
  CHECK(workers_that_fit({.cores = 8, .memory_bytes = std::nullopt}) == 8);
}

TEST_CASE("free memory is what the system has available, where no cgroup says less") {
  FakeRoot root;
  CHECK(!root.share().memory_bytes);
  CHECK(root.share().cores >= 1);
  root.file("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n");
  CHECK(root.share().memory_bytes == 5000 * 1024);
  root.file("proc/self/cgroup", "0::/a/b\n").file("sys/fs/cgroup/a/b/memory.max", "max\n");
  CHECK(root.share().memory_bytes == 5000 * 1024);
}

TEST_CASE("the limits of a cgroup and of those above it count, without droppable file cache") {
  FakeRoot root;
  root.file("proc/meminfo", "MemAvailable: 50000000 kB\n")
      .file("proc/self/cgroup", "0::/a/b\n")
      .file("sys/fs/cgroup/a/memory.max", "1000\n")
      .file("sys/fs/cgroup/a/memory.current", "900\n")
      .file("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 300\n")
      .file("sys/fs/cgroup/a/b/memory.max", "max\n")
      .file("sys/fs/cgroup/cpu.max", "max 100000\n")
      .file("sys/fs/cgroup/a/b/cpu.max", "100000 100000\n");
  CHECK(root.share().memory_bytes == 400U);
  CHECK(root.share().cores == 1);
  root.file("sys/fs/cgroup/a/memory.current", "2000\n");
  CHECK(root.share().memory_bytes == 0U);
}

TEST_CASE("a container sees its cgroup as the root") {
  FakeRoot root;
  root.file("proc/self/cgroup", "0::/\n")
      .file("sys/fs/cgroup/memory.max", "800000000\n")
      .file("sys/fs/cgroup/cpu.max", "20000 100000\n");
  CHECK(root.share().memory_bytes == 800 * megabyte);
  CHECK(root.share().cores == 1);
}

TEST_CASE("cgroups of version 1 count likewise") {
  FakeRoot root;
  root.file("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n")
      .file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n")
      .file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
      .file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n")
      .file("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(root.share().memory_bytes == 900U);
  CHECK(root.share().cores == 1);
}

}  // namespace attnjit
