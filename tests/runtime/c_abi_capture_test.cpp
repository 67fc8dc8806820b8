// Kernels that are not ready: while a stream is captured, and where compiling is forbidden; and
// what a program is told of it.
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "cache/scratch_directory.hpp"
#include "catch.hpp"

using namespace attnjit::test;

namespace {

using Names = std::vector<std::string>;

const std::vector<const char*>& descriptors() {
  static const std::vector<const char*> all = {mla_decode,     gqa_decode,      ragged_prefill,
                                               paged_prefill,  rope_prefill,    sparse_decode,
                                               sparse_prefill, append_to_cache, merge_of_parts};
  return all;
}

void* captured_stream() {
  return reinterpret_cast<void*>(std::uintptr_t{0x88});
}

// What callbacks were told.
struct Told {
  Names misses;  // kernel, arch, reason
  Names keys;
  Names warnings;
};

void record_miss(void* user, const attnjit_miss* miss) {
  auto& told = *static_cast<Told*>(user);
  CHECK(miss->struct_size == sizeof(attnjit_miss));
  CHECK_FALSE(std::string(miss->detail).empty());
  told.misses.push_back(std::string(miss->kernel) + " " + miss->arch + " " + miss->reason);
  told.keys.emplace_back(miss->key);
}

void record_log(void* user, std::int32_t level, const char* message) {
  if (level == ATTNJIT_LOG_WARNING) {
    static_cast<Told*>(user)->warnings.emplace_back(message);
  }
}

}  // namespace

TEST_CASE("c abi: a cold kernel is an error while the stream is captured, and nothing is loaded") {
  CAbiSession session;
  session.mock.is_capturing = true;
  for (const char* descriptor : descriptors()) {
    attnjit_kernel kernel = 77;
    CHECK(attnjit_prepare(session.runtime, descriptor, captured_stream(), &kernel) ==
          ATTNJIT_COLD_KERNEL);
    CHECK(kernel == 0);
    CHECK(last_message_has("are not ready on device 0 and the stream is being captured"));
    CHECK(last_message_has("fix: "));
    CHECK(std::string(attnjit_last_violations()) == "[]");
  }
  CHECK(session.mock.loaded_cubins.empty());
  CHECK(session.mock.allocations.empty());
}

TEST_CASE("c abi: a prepared kernel is given and run while the stream is captured") {
  CAbiSession session;
  for (const char* descriptor : descriptors()) {
    REQUIRE(attnjit_kernel_release(session.prepare(descriptor)) == ATTNJIT_OK);
  }
  const auto decode = right_mla_decode(session);
  const std::size_t loaded = session.mock.loaded_cubins.size();
  session.mock.is_capturing = true;
  for (const char* descriptor : descriptors()) {
    CHECK(session.prepare(descriptor, captured_stream()) != 0);
  }
  CHECK(session.mock.loaded_cubins.size() == loaded);
  const auto* seq_lens = static_cast<const int*>(device_address(9));
  CHECK(attnjit_plan_update(decode.handle, seq_lens, 2, captured_stream()) == ATTNJIT_OK);
  CHECK(decode(decode.call) == ATTNJIT_OK);
  CHECK(session.take_launched_kernels() ==
        Names{"schedule_decode", "swapped_decode_sm90", "combine_splits"});
}

TEST_CASE("c abi: is_cold says beforehand whether prepare would load, and touches no GPU") {
  CAbiSession session;
  for (const char* descriptor : descriptors()) {
    std::int32_t is_cold = 77;
    CHECK(attnjit_is_cold(session.runtime, descriptor, &is_cold) == ATTNJIT_OK);
    CHECK(is_cold == 1);
    CHECK(session.mock.retained_devices.empty());
    const attnjit_kernel kernel = session.prepare(descriptor);
    REQUIRE(attnjit_kernel_release(kernel) == ATTNJIT_OK);  // the code stays loaded
    CHECK(attnjit_is_cold(session.runtime, descriptor, &is_cold) == ATTNJIT_OK);
    CHECK(is_cold == 0);
    session.mock.retained_devices.clear();
  }
}

TEST_CASE("c abi: the legacy stream counts as captured while a stream is that waits for it") {
  CAbiSession session;
  session.mock.is_capturing_implicitly = true;
  attnjit_kernel kernel = 0;
  CHECK(attnjit_prepare(session.runtime, merge_of_parts, nullptr, &kernel) == ATTNJIT_COLD_KERNEL);
  CHECK(session.mock.loaded_cubins.empty());
  CHECK(attnjit_prepare(session.runtime, merge_of_parts, captured_stream(), &kernel) == ATTNJIT_OK);
}

TEST_CASE("c abi: where compiling is forbidden, what the cache lacks is missing") {
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  Told told;
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.forbid_jit = 1;
    options.user = &told;
    options.on_miss = record_miss;
  });
  attnjit_kernel kernel = 77;
  CHECK(attnjit_prepare(session.runtime, merge_of_parts, nullptr, &kernel) ==
        ATTNJIT_MISSING_KERNEL);
  CHECK(kernel == 0);
  CHECK(last_message_has("merge_states"));
  CHECK(attnjit_warm(session.runtime, merge_of_parts, "sm_80", nullptr) == ATTNJIT_MISSING_KERNEL);
  REQUIRE(told.misses.size() == 2);
  CHECK(told.misses[0] == "merge_states sm_90a absent");
  CHECK(told.misses[1] == "merge_states sm_80 absent");
}

TEST_CASE("c abi: where compiling is forbidden, what the cache holds is served") {
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  {
    CAbiSession filling([&](auto& options) { options.cache_directory = directory.c_str(); });
    REQUIRE(attnjit_warm(filling.runtime, merge_of_parts, "h200", nullptr) == ATTNJIT_OK);
  }
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.forbid_jit = 1;
  });
  const auto right = right_merge(session);
  CHECK(right(right.call) == ATTNJIT_OK);
}

TEST_CASE("c abi: a read-only layer serves what the directory lacks") {
  const ScratchDirectory filled;
  const ScratchDirectory empty;
  const std::string layer = filled.path().string();
  const std::string directory = empty.path().string();
  {
    CAbiSession filling([&](auto& options) { options.cache_directory = layer.c_str(); });
    REQUIRE(attnjit_warm(filling.runtime, merge_of_parts, "h200", nullptr) == ATTNJIT_OK);
  }
  const char* layers[] = {layer.c_str()};
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.cache_layers = layers;
    options.num_cache_layers = 1;
    options.forbid_jit = 1;
  });
  CHECK(session.prepare(merge_of_parts) != 0);
}

TEST_CASE("c abi: a miss is told once, before the compile, with its key, and traced") {
  const ScratchDirectory cache;
  const std::string directory = (cache.path() / "cache").string();
  const std::string trace = (cache.path() / "trace").string();
  Told told;
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.miss_trace = trace.c_str();
    options.user = &told;
    options.on_miss = record_miss;
    options.log = record_log;
  });
  session.prepare(merge_of_parts);
  session.prepare(merge_of_parts);
  CHECK(told.misses == Names{"merge_states sm_90a absent"});
  CHECK(told.warnings.empty());
  REQUIRE(told.keys.size() == 1);
  CHECK(read_text(trace).find(told.keys[0]) != std::string::npos);
}

TEST_CASE("c abi: a warm that the cache does not keep is no success") {
  const ScratchDirectory scratch;
  write_text(scratch.path() / "file", "no directory");
  std::filesystem::create_directory(scratch.path() / "open");
  std::filesystem::permissions(scratch.path() / "open", std::filesystem::perms::all);
  for (const char* name : {"file/below", "open"}) {
    const std::string directory = (scratch.path() / name).string();
    Told told;
    CAbiSession session([&](auto& options) {
      options.cache_directory = directory.c_str();
      options.user = &told;
      options.log = record_log;
    });
    std::int32_t compiled = 0;
    CHECK(attnjit_warm(session.runtime, merge_of_parts, "sm_80", &compiled) == ATTNJIT_NOT_STORED);
    CHECK(compiled == 1);
    CHECK(last_message_has("compiled kernels that the cache did not keep: 1; "));
    CHECK(last_message_has(directory));
  }
}

TEST_CASE("c abi: warnings go to the caller's log") {
  const ScratchDirectory scratch;
  const std::string in_the_way = (scratch.path() / "file").string();
  write_text(in_the_way, "no directory");
  Told told;
  CAbiSession session([&](auto& options) {
    options.cache_directory = in_the_way.c_str();
    options.user = &told;
    options.log = record_log;
  });
  session.prepare(merge_of_parts);  // compiled in memory
  REQUIRE_FALSE(told.warnings.empty());
  CHECK(told.warnings[0].find(in_the_way) != std::string::npos);
}

// What callbacks did with their runtime.
struct CallsBack {
  attnjit_runtime runtime = 0;
  std::vector<attnjit_status> statuses;
};

TEST_CASE("c abi: calls of a callback are refused, and handles that it ends end after the call") {
  CallsBack calls;
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.user = &calls;
    options.on_miss = [](void* user, const attnjit_miss*) {
      auto& told = *static_cast<CallsBack*>(user);
      attnjit_kernel kernel = 0;
      told.statuses.push_back(attnjit_prepare(told.runtime, merge_of_parts, nullptr, &kernel));
      CHECK(std::string(attnjit_last_message()).find("must not come from a callback") !=
            std::string::npos);
      told.statuses.push_back(attnjit_validate(merge_of_parts));
      told.statuses.push_back(attnjit_runtime_destroy(told.runtime));
    };
  });
  calls.runtime = session.runtime;
  attnjit_kernel kernel = 0;
  CHECK(attnjit_prepare(session.runtime, merge_of_parts, nullptr, &kernel) == ATTNJIT_OK);
  CHECK(calls.statuses == std::vector<attnjit_status>{ATTNJIT_INVALID_ARGUMENT,
                                                      ATTNJIT_INVALID_ARGUMENT, ATTNJIT_OK});
  CHECK(attnjit_runtime_destroy(session.runtime) == ATTNJIT_INVALID_ARGUMENT);  // it has ended
  session.runtime = 0;
  CHECK(attnjit_kernel_release(kernel) == ATTNJIT_OK);
}

TEST_CASE("c abi: what a callback throws is a status, never a crash") {
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.on_miss = [](void*, const attnjit_miss*) { throw std::runtime_error("not now"); };
  });
  attnjit_kernel kernel = 0;
  CHECK(attnjit_prepare(session.runtime, merge_of_parts, nullptr, &kernel) ==
        ATTNJIT_INTERNAL_ERROR);
  CHECK(std::string(attnjit_last_message()) == "not now");
  CAbiSession other([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.on_miss = [](void*, const attnjit_miss*) { throw 7; };
  });
  CHECK(attnjit_prepare(other.runtime, merge_of_parts, nullptr, &kernel) == ATTNJIT_INTERNAL_ERROR);
}
