// entry_file.cpp with a system call that fails at will. The linker sends the calls named in
// CMakeLists.txt (--wrap) through the functions below.
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/stat.h>
#include <sys/types.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace {

// Fails `remaining` calls of `call` with `error_number`, after letting `passing` through.
struct Fault {
  std::string_view call;
  int error_number = 0;
  int passing = 0;
  int remaining = 0;
};

Fault armed;
std::size_t longest_transfer = static_cast<std::size_t>(-1);  // of one read or write

bool strikes(std::string_view call) {
  if (call != armed.call || armed.remaining == 0) {
    return false;
  }
  if (armed.passing > 0) {
    --armed.passing;
    return false;
  }
  --armed.remaining;
  errno = armed.error_number;
  return true;
}

}  // namespace

extern "C" {
ssize_t __real_read(int descriptor, void* buffer, std::size_t bytes);
ssize_t __real_write(int descriptor, const void* buffer, std::size_t bytes);
int __real_fsync(int descriptor);
int __real_close(int descriptor);
int __real_rename(const char* from, const char* to);
int __real_fstat(int descriptor, struct stat* status);
int __real_fchmod(int descriptor, mode_t mode);

ssize_t __wrap_read(int descriptor, void* buffer, std::size_t bytes) {
  return strikes("read") ? -1 : __real_read(descriptor, buffer, std::min(bytes, longest_transfer));
}

ssize_t __wrap_write(int descriptor, const void* buffer, std::size_t bytes) {
  return strikes("write") ? -1
                          : __real_write(descriptor, buffer, std::min(bytes, longest_transfer));
}

int __wrap_fsync(int descriptor) {
  return strikes("fsync") ? -1 : __real_fsync(descriptor);
}

// As on Linux: the descriptor is gone although the call failed.
int __wrap_close(int descriptor) {
  const int result = __real_close(descriptor);
  return strikes("close") ? -1 : result;
}

int __wrap_rename(const char* from, const char* to) {
  return strikes("rename") ? -1 : __real_rename(from, to);
}

int __wrap_fstat(int descriptor, struct stat* status) {
  return strikes("fstat") ? -1 : __real_fstat(descriptor, status);
}

int __wrap_fchmod(int descriptor, mode_t mode) {
  return strikes("fchmod") ? -1 : __real_fchmod(descriptor, mode);
}
}

namespace attnjit {
namespace {

constexpr int for_ever = 1'000'000;

// Arms a fault, or short transfers, for the life of the object.
struct Injection {
  explicit Injection(Fault fault) { armed = fault; }
  explicit Injection(std::size_t transfer_bytes) { longest_transfer = transfer_bytes; }
  ~Injection() {
    armed = {};
    longest_transfer = static_cast<std::size_t>(-1);
  }
  Injection(const Injection&) = delete;
  Injection& operator=(const Injection&) = delete;
};

const std::string payload(3000, 'p');

CacheKey some_key() {
  return CacheKeyBuilder().add("source", "kernel").finish();
}

}  // namespace

TEST_CASE(
    "atomic publish: a put that fails at any call warns with the call's problem and leaves "
    "nothing") {
  const std::array<Fault, 7> faults = {{{"write", ENOSPC, 0, 1},
                                        {"write", EIO, 0, 1},
                                        {"write", EDQUOT, 0, 1},
                                        {"fchmod", EPERM, 0, 1},
                                        {"fsync", EIO, 0, 1},
                                        {"close", EIO, 0, 1},
                                        {"rename", EACCES, 0, 1}}};
  for (const Fault& fault : faults) {
    const test::ScratchDirectory scratch;
    std::string warning;
    DiskCache cache(scratch.path(), [&](std::string_view message) { warning = message; });
    {
      const Injection injection(fault);
      CHECK_FALSE(cache.put(some_key(), "", payload));
    }
    const std::string meaning =
        std::error_code(fault.error_number, std::generic_category()).message();
    CHECK(warning.find(meaning) != std::string::npos);
    CHECK(cache.get(some_key()).reason == MissReason::absent);
    CHECK(test::count_temporary_files(scratch.path()) == 0);
    CHECK(cache.put(some_key(), "", payload));
  }
}

TEST_CASE("atomic publish: a put that fails keeps the entry that was there") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(some_key(), "old", payload));
  const Injection injection(Fault{"write", ENOSPC, 0, for_ever});
  CHECK_FALSE(cache.put(some_key(), "new", payload));
  const CacheLookup lookup = cache.get(some_key());
  CHECK((lookup.entry && lookup.entry->metadata == "old"));
}

TEST_CASE("atomic publish: a directory that cannot be synced is reported, unless it never can") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  for (const int harmless : {EINVAL, ENOTSUP}) {
    const Injection injection(Fault{"fsync", harmless, 1, 1});
    CHECK(cache.put(some_key(), "", payload));
  }
  const Injection injection(Fault{"fsync", EIO, 1, 1});
  CHECK_FALSE(cache.put(some_key(), "", payload));
  CHECK(cache.get(some_key()).entry.has_value());
}

TEST_CASE("atomic publish: interrupted calls are made again") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  for (const std::string_view call : {"write", "fsync", "close"}) {
    const Injection injection(Fault{call, EINTR, 0, call == "close" ? 1 : 5});
    CHECK(cache.put(some_key(), "", payload));
  }
  const Injection injection(Fault{"read", EINTR, 0, 5});
  CHECK(cache.get(some_key()).entry.has_value());
}

TEST_CASE("never fatal: calls interrupted without end become a miss and a failed put, not a hang") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(some_key(), "", payload));
  {
    const Injection injection(Fault{"read", EINTR, 0, for_ever});
    CHECK(cache.get(some_key()).reason == MissReason::unreadable);
  }
  const Injection injection(Fault{"write", EINTR, 0, for_ever});
  CHECK_FALSE(cache.put(some_key(), "", payload));
}

TEST_CASE("atomic publish: reads and writes of a few bytes at a time add up to the whole entry") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  const Injection injection(std::size_t{7});
  REQUIRE(cache.put(some_key(), "", payload));
  const CacheLookup lookup = cache.get(some_key());
  CHECK((lookup.entry && lookup.entry->payload == payload));
}

TEST_CASE("never fatal: a stale handle is tried once more, and a second one is a miss") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(some_key(), "", payload));
  for (const std::string_view call : {"read", "fstat"}) {
    for (const int passing_error : {ESTALE, EAGAIN, EBUSY}) {
      {
        const Injection once(Fault{call, passing_error, 0, 1});
        CHECK(cache.get(some_key()).entry.has_value());
      }
      const Injection twice(Fault{call, passing_error, 0, 2});
      CHECK(cache.get(some_key()).reason == MissReason::unreadable);
      CHECK(cache.get(some_key()).entry.has_value());
    }
  }
}

TEST_CASE("never fatal: a read error that stays is a miss that names it, without a second try") {
  const test::ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(some_key(), "", payload));
  const Injection injection(Fault{"read", EIO, 0, 1});
  const CacheLookup lookup = cache.get(some_key());
  CHECK(lookup.reason == MissReason::unreadable);
  CHECK(lookup.detail.find("read") != std::string::npos);
}

}  // namespace attnjit
