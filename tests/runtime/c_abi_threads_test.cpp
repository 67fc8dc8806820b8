// The C interface from many threads: one message each, ends that wait for calls in flight, and
// runs beside updates and releases. Built with the preset tsan, this is free of races.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "cache/scratch_directory.hpp"
#include "catch.hpp"

using namespace attnjit::test;

namespace {

// Keeps the first launch in the driver until it is let go.
struct HeldLaunch {
  explicit HeldLaunch(MockDriver& mock) {
    mock.on_launch = [this] {
      if (!is_taken.exchange(true)) {
        arrived.count_down();
        let_go.wait();
      }
    };
  }

  std::atomic<bool> is_taken = false;
  std::latch arrived{1};
  std::latch let_go{1};
};

bool is_still_waiting(const std::future<attnjit_status>& future) {
  return future.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

void* stream_of(int i) {
  return reinterpret_cast<void*>(std::uintptr_t{0x100} + static_cast<std::uintptr_t>(i));
}

// A run of `right` is held in the driver; `end` must wait for it.
template <typename Call>
void check_that_end_waits(CAbiSession& session, const RightCall<Call>& right,
                          const std::function<attnjit_status()>& end) {
  HeldLaunch held(session.mock);
  auto run = std::async(std::launch::async, [&] { return right(right.call); });
  held.arrived.wait();
  auto ended = std::async(std::launch::async, end);
  CHECK(is_still_waiting(ended));
  CHECK(is_still_waiting(run));
  held.let_go.count_down();
  CHECK(run.get() == ATTNJIT_OK);
  CHECK(ended.get() == ATTNJIT_OK);
  session.mock.on_launch = nullptr;
}

}  // namespace

TEST_CASE("c abi: each thread has a message of its own, which success clears") {
  CAbiSession session;
  CHECK(attnjit_validate("{") == ATTNJIT_INVALID_DESCRIPTOR);
  CHECK_FALSE(std::string(attnjit_last_message()).empty());
  CHECK_FALSE(violated_fields().empty());
  std::thread([] {
    CHECK(std::string(attnjit_last_message()).empty());
    CHECK(std::string(attnjit_last_violations()) == "[]");
    CHECK(attnjit_runtime_destroy(77) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has("runtime = 0x4d"));
  }).join();
  CHECK_FALSE(last_message_has("0x4d"));
  CHECK_FALSE(violated_fields().empty());
  CHECK(attnjit_runtime_destroy(77) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(std::string(attnjit_last_violations()) == "[]");
  CHECK(attnjit_validate("{}") == ATTNJIT_OK);
  CHECK(std::string(attnjit_last_message()).empty());
}

TEST_CASE("c abi: the end of a plan waits for its decode") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  check_that_end_waits(session, right, [&] { return attnjit_plan_destroy(right.handle); });
  CHECK(right(right.call) == ATTNJIT_INVALID_ARGUMENT);
}

TEST_CASE("c abi: the update of a plan waits for its decode") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  const std::vector<int> seq_lens = {5, 6};
  check_that_end_waits(session, right, [&] {
    return attnjit_plan_update_from_host(right.handle, seq_lens.data(), 2, nullptr);
  });
}

TEST_CASE("c abi: the release of a kernel waits for its run") {
  CAbiSession session;
  const auto right = right_ragged_prefill(session);
  check_that_end_waits(session, right, [&] { return attnjit_kernel_release(right.handle); });
  CHECK(right(right.call) == ATTNJIT_INVALID_ARGUMENT);
}

TEST_CASE("c abi: the end of a runtime waits for what it prepares") {
  static std::latch arrived{1};
  static std::latch let_go{1};
  CAbiSession other;
  const auto right = right_merge(other);
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.on_miss = [](void*, const attnjit_miss*) {
      arrived.count_down();
      let_go.wait();
    };
  });
  attnjit_kernel kernel = 0;
  auto prepared = std::async(std::launch::async, [&] {
    return attnjit_prepare(session.runtime, merge_of_parts, nullptr, &kernel);
  });
  arrived.wait();
  auto ended =
      std::async(std::launch::async, [&] { return attnjit_runtime_destroy(session.runtime); });
  CHECK(is_still_waiting(ended));
  let_go.count_down();
  CHECK(prepared.get() == ATTNJIT_OK);
  CHECK(ended.get() == ATTNJIT_OK);
  CHECK(right.run(kernel, &right.call) == ATTNJIT_OK);
  session.runtime = 0;
}

namespace {

constexpr int num_runners = 8;
constexpr int num_streams = 4;
constexpr int runs_of_each = 10000;

// What the threads share. Assertions are left to the thread that joins them.
struct Traffic {
  explicit Traffic(CAbiSession& shared) : session(shared), kernel(shared.prepare(mla_decode)) {
    for (int i = 0; i < num_streams; ++i) {
      decodes.push_back(right_mla_decode(session));
    }
    stale = session.prepare(merge_of_parts);
    expect(attnjit_kernel_release(stale) == ATTNJIT_OK);
  }

  void expect(bool is_right) { failures += is_right ? 0 : 1; }

  CAbiSession& session;
  attnjit_kernel kernel;
  attnjit_kernel stale = 0;
  std::vector<RightCall<attnjit_decode_call>> decodes;
  std::atomic<int> failures = 0;
  std::atomic<int> running = num_runners;
  std::size_t updates = 0;
  std::size_t rounds = 0;
};

void run_decodes(Traffic& traffic, int runner) {
  const int stream = runner % num_streams;
  const auto& right = traffic.decodes[static_cast<std::size_t>(stream)];
  for (int i = 0; i < runs_of_each; ++i) {
    traffic.expect(attnjit_decode(right.handle, &right.call, device_address(runner),
                                  std::int64_t{1} << 40, stream_of(stream)) == ATTNJIT_OK);
  }
  --traffic.running;
}

void update_plans(Traffic& traffic) {
  const auto* seq_lens = static_cast<const int*>(device_address(90));
  for (; traffic.running > 0; ++traffic.updates) {
    const auto stream = static_cast<int>(traffic.updates % num_streams);
    traffic.expect(attnjit_plan_update(traffic.decodes[static_cast<std::size_t>(stream)].handle,
                                       seq_lens, decode_batch, stream_of(stream)) == ATTNJIT_OK);
  }
}

void make_and_release(Traffic& traffic) {
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.max_batch = 2;
  for (; traffic.running > 0; ++traffic.rounds) {
    attnjit_kernel kernel = 0;
    attnjit_plan plan = 0;
    traffic.expect(attnjit_prepare(traffic.session.runtime, mla_decode, nullptr, &kernel) ==
                   ATTNJIT_OK);
    traffic.expect(attnjit_plan_create(kernel, &options, &plan) == ATTNJIT_OK);
    traffic.expect(attnjit_kernel_release(kernel) == ATTNJIT_OK);
    traffic.expect(attnjit_plan_destroy(plan) == ATTNJIT_OK);
    traffic.expect(attnjit_plan_destroy(plan) == ATTNJIT_INVALID_ARGUMENT);
    traffic.expect(attnjit_kernel_release(traffic.stale) == ATTNJIT_INVALID_ARGUMENT);
  }
}

}  // namespace

TEST_CASE("c abi: 8 threads run 10000 times each on 4 streams, beside updates and releases") {
  CAbiSession session;
  session.mock.keeps_calls = false;
  Traffic traffic(session);
  const std::size_t launches_before = session.mock.num_launches;
  std::vector<std::thread> threads;
  for (int runner = 0; runner < num_runners; ++runner) {
    threads.emplace_back([&traffic, runner] { run_decodes(traffic, runner); });
  }
  threads.emplace_back([&traffic] { update_plans(traffic); });
  threads.emplace_back([&traffic] { make_and_release(traffic); });
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(traffic.failures == 0);
  CHECK(traffic.updates > 0);
  CHECK(traffic.rounds > 0);
  const std::size_t launches_of_runs = std::size_t{num_runners} * runs_of_each * 2;
  CHECK(session.mock.num_launches == launches_before + launches_of_runs + traffic.updates);
  for (const auto& decode : traffic.decodes) {
    CHECK(release(decode) == ATTNJIT_OK);
  }
  CHECK(session.mock.allocations.empty());
}
