// Where the C interface gets device memory from.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "catch.hpp"
#include "interface/decode_schedule.h"

using namespace attnjit::test;

namespace {

// A caller's pool of device memory.
struct Pool {
  std::map<void*, std::size_t> held;
  std::size_t gifts = SIZE_MAX;  // after which there is no memory left
  std::size_t misplaced_bytes = 0;
  int wrong_releases = 0;
  std::int32_t device = -1;  // of the last call
};

void* allocate(void* user, std::int32_t device, std::size_t bytes) {
  auto& pool = *static_cast<Pool*>(user);
  pool.device = device;
  if (pool.gifts == 0) {
    return nullptr;
  }
  --pool.gifts;
  void* const whole = std::aligned_alloc(256, (bytes / 256 + 2) * 256);
  void* const memory = static_cast<std::byte*>(whole) + pool.misplaced_bytes;
  pool.held[memory] = bytes;
  return memory;
}

void release_to_pool(void* user, std::int32_t device, void* memory, std::size_t bytes) {
  auto& pool = *static_cast<Pool*>(user);
  const auto found = pool.held.find(memory);
  if (found == pool.held.end() || found->second != bytes || device != pool.device) {
    ++pool.wrong_releases;
    return;
  }
  std::free(static_cast<std::byte*>(memory) - pool.misplaced_bytes);
  pool.held.erase(found);
}

CAbiSession::Change with_pool(Pool& pool) {
  return [&pool](attnjit_runtime_options& options) {
    options.device = 1;
    options.trusts_pointers = 1;
    options.user = &pool;
    options.allocate = allocate;
    options.release = release_to_pool;
  };
}

attnjit_status try_plan(attnjit_kernel kernel, attnjit_plan* plan) {
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.max_batch = 4;
  return attnjit_plan_create(kernel, &options, plan);
}

}  // namespace

TEST_CASE("c abi: a plan lies in the caller's memory, and gives it back with its size") {
  Pool pool;
  CAbiSession session(with_pool(pool));
  const attnjit_plan plan = session.make_plan(mla_decode, 4);
  CHECK(session.mock.allocations.empty());
  CHECK(pool.device == 1);
  CHECK(pool.held.size() == 3);
  REQUIRE(attnjit_plan_update(plan, static_cast<const int*>(device_address(0)), 4, nullptr) ==
          ATTNJIT_OK);
  const auto schedule =
      arguments_of<attnjit::kernel_interface::ScheduleArguments>(session.mock.launches.at(0));
  CHECK(pool.held.contains(schedule.parts));
  CHECK(pool.held.contains(schedule.piece_offsets));
  CHECK(pool.held.contains(schedule.unit_offsets));
  const std::vector<int> seq_lens = {9000, 1, 70, 500};
  CHECK(attnjit_plan_update_from_host(plan, seq_lens.data(), 4, nullptr) == ATTNJIT_OK);
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  CHECK(pool.held.empty());
  CHECK(pool.wrong_releases == 0);
}

TEST_CASE("c abi: where the caller's memory ends, no plan is made and nothing is kept") {
  for (const std::size_t gifts : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    Pool pool;
    pool.gifts = gifts;
    CAbiSession session(with_pool(pool));
    const attnjit_kernel kernel = session.prepare(mla_decode);
    attnjit_plan plan = 77;
    CHECK(try_plan(kernel, &plan) == ATTNJIT_OUT_OF_MEMORY);
    CHECK(plan == 0);
    CHECK(last_message_has("the caller's allocator gave no memory"));
    CHECK(pool.held.empty());
    CHECK(pool.wrong_releases == 0);
    pool.gifts = 3;
    CHECK(try_plan(kernel, &plan) == ATTNJIT_OK);
    CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  }
}

TEST_CASE("c abi: memory that is not 256-byte aligned is refused and given back") {
  Pool pool;
  pool.misplaced_bytes = 128;
  CAbiSession session(with_pool(pool));
  attnjit_plan plan = 77;
  CHECK(try_plan(session.prepare(mla_decode), &plan) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(plan == 0);
  CHECK(last_message_has("options->allocate = 0x"));
  CHECK(last_message_has("must be 256-byte aligned"));
  CHECK(pool.held.empty());
  CHECK(pool.wrong_releases == 0);
}

TEST_CASE("c abi: allocate and release are given together") {
  for (const bool has_allocate : {true, false}) {
    attnjit_runtime_options options = session_options();
    options.allocate = has_allocate ? allocate : nullptr;
    options.release = has_allocate ? nullptr : release_to_pool;
    attnjit_runtime runtime = 0;
    CHECK(attnjit_runtime_create(&options, &runtime) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has("options->allocate and options->release = "));
  }
}

TEST_CASE("c abi: memory outlives the runtime that it was asked by") {
  Pool pool;
  attnjit_plan plan = 0;
  {
    CAbiSession session(with_pool(pool));
    plan = session.make_plan(mla_decode, 4);
  }
  CHECK(pool.held.size() == 3);
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  CHECK(pool.held.empty());
}

TEST_CASE("c abi: where the driver has no memory left, no plan is made") {
  CAbiSession session;
  const attnjit_kernel kernel = session.prepare(mla_decode);
  session.mock.allocation_result = CUDA_ERROR_OUT_OF_MEMORY;
  attnjit_plan plan = 77;
  CHECK(try_plan(kernel, &plan) == ATTNJIT_OUT_OF_MEMORY);
  CHECK(plan == 0);
  CHECK(last_message_has("cuMemAlloc"));
}

TEST_CASE("c abi: a plan ends also where the driver gives no context any more") {
  CAbiSession session;
  const attnjit_plan plan = session.make_plan(mla_decode, 4);
  session.mock.context_result = CUDA_ERROR_DEINITIALIZED;
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  CHECK(attnjit_plan_destroy(plan) == ATTNJIT_INVALID_ARGUMENT);
}

TEST_CASE("c abi: running allocates nothing of the device") {
  Pool pool;
  CAbiSession session(with_pool(pool));
  for_each_right_call(session, [&](const auto& right) {
    pool.gifts = 0;
    const attnjit_status status = right(right.call);
    INFO(right.operation << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_OK);
    pool.gifts = SIZE_MAX;
  });
  CHECK(session.mock.allocations.empty());
}
