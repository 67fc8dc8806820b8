// What a hit costs in system calls, counted by ptrace in the child that makes them.
#include <chrono>
#include <csignal>
#include <set>
#include <string>

#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::ScratchDirectory;

constexpr int not_traced = -1;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool makes_calls_of_its_own = true;
#else
constexpr bool makes_calls_of_its_own = false;
#endif

CacheKey some_key() {
  return CacheKeyBuilder().add("source", "kernel").finish();
}

// Stops itself before and after a get that must hit.
int get_between_stops(const fs::path& root, std::chrono::hours age) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    return test::not_permitted;
  }
  const DiskCache cache(root, nullptr);
  const CacheKey key = some_key();
  const bool is_warm = cache.get(key).entry.has_value();  // judges the directory
  const fs::path path = cache.list()[0].path;
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  ::raise(SIGSTOP);
  const CacheLookup lookup = cache.get(key);
  ::raise(SIGSTOP);
  return is_warm && lookup.entry ? 0 : 1;
}

bool stopped_by(pid_t child, int& signal) {
  int status = 0;
  const bool is_stopped = ::waitpid(child, &status, 0) == child && WIFSTOPPED(status);
  signal = is_stopped ? WSTOPSIG(status) : 0;
  return is_stopped;
}

// Memory, and what raise needs.
bool is_of_the_library(long number) {
  static const std::set<long> numbers = {SYS_brk,    SYS_mmap,   SYS_munmap,        SYS_getpid,
                                         SYS_gettid, SYS_tgkill, SYS_rt_sigprocmask};
  return numbers.contains(number);
}

// The child's calls between its two stops.
int count_calls(pid_t child) {
  int calls = 0;
  int signal = 0;
  bool is_entry = true;  // each call stops when it begins and when it ends
  if (!stopped_by(child, signal)) {
    return not_traced;
  }
  do {
    if (::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0 || !stopped_by(child, signal)) {
      return not_traced;
    }
    const long number = ::ptrace(PTRACE_PEEKUSER, child, 8 * ORIG_RAX, nullptr);
    calls += signal != SIGSTOP && is_entry && !is_of_the_library(number) ? 1 : 0;
    is_entry = !is_entry;
  } while (signal != SIGSTOP);
  ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  return calls;
}

}  // namespace

TEST_CASE("warm-hit cost: a hit takes four system calls, five if it is the first within an hour") {
  if (makes_calls_of_its_own) {
    WARN("not run: the sanitizer makes system calls of its own");
    return;
  }
  const ScratchDirectory scratch;
  REQUIRE(DiskCache(scratch.path(), nullptr).put(some_key(), "", std::string(100'000, 'x')));
  for (const auto& [age, expected] : {std::pair(0h, 4), std::pair(2h, 5)}) {
    const pid_t child =
        test::start_child([&, hours = age] { return get_between_stops(scratch.path(), hours); });
    const int calls = count_calls(child);
    const int result = test::wait_for_child(child);
    if (calls == not_traced || result == test::not_permitted) {
      WARN("not run: this process may not trace its children");
      return;
    }
    CHECK(result == 0);
    CHECK(calls == expected);
  }
}

}  // namespace attnjit
