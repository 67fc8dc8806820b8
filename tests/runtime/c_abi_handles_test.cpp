// Handles of the C interface that are none: 0, stale, of another kind, invented.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "catch.hpp"

using namespace attnjit::test;

namespace {

using Use = std::function<attnjit_status(std::uint64_t handle)>;

// A function of the interface that takes a handle, and the name of that parameter.
struct HandleUse {
  std::string name;
  Use use;
};

std::vector<HandleUse> runtime_uses() {
  static attnjit_kernel kernel = 0;
  static std::int32_t number = 0;
  static std::size_t bytes = 0;
  return {
      {"runtime",
       [](auto handle) { return attnjit_warm(handle, merge_of_parts, "h100", &number); }},
      {"runtime",
       [](auto handle) {
         return attnjit_source(handle, merge_of_parts, "h100", nullptr, 0, &bytes);
       }},
      {"runtime",
       [](auto handle) { return attnjit_prepare(handle, merge_of_parts, nullptr, &kernel); }},
      {"runtime", [](auto handle) { return attnjit_is_cold(handle, merge_of_parts, &number); }},
  };
}

std::vector<HandleUse> kernel_uses(CAbiSession& session) {
  static attnjit_plan_options options = {};
  static attnjit_plan plan = 0;
  static attnjit_prefill_split split = {};
  options.struct_size = sizeof options;
  options.max_batch = 1;
  split.struct_size = sizeof split;
  std::vector<HandleUse> uses = {
      {"kernel", [](auto handle) { return attnjit_plan_create(handle, &options, &plan); }}};
  for_each_right_call(session, [&](const auto& right) {
    using Call = std::decay_t<decltype(right.call)>;
    if constexpr (!std::is_same_v<Call, attnjit_decode_call>) {
      uses.push_back({"kernel", [right](auto handle) { return right.run(handle, &right.call); }});
    }
    if constexpr (std::is_same_v<Call, attnjit_prefill_call>) {
      uses.push_back({"kernel", [right](auto handle) {
                        return attnjit_prefill_plan(handle, &right.call, &split);
                      }});
    }
  });
  return uses;
}

std::vector<HandleUse> plan_uses(CAbiSession& session) {
  static std::int64_t bytes = 0;
  static const int seq_lens[] = {5, 6};
  const auto right = right_mla_decode(session);
  return {
      {"plan", [](auto handle) { return attnjit_plan_workspace_bytes(handle, &bytes); }},
      {"plan",
       [](auto handle) {
         return attnjit_plan_update(handle, static_cast<const int*>(device_address(0)), 2, nullptr);
       }},
      {"plan",
       [](auto handle) { return attnjit_plan_update_from_host(handle, seq_lens, 2, nullptr); }},
      {"plan", [right](auto handle) { return right.run(handle, &right.call); }},
  };
}

void check_refused(const HandleUse& use, std::uint64_t handle) {
  INFO(use.name << " " << handle);
  CHECK(use.use(handle) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(last_message_has(use.name + " = "));
  CHECK(last_message_has("is no " + use.name + " of this process"));
}

// Numbers that no handle is, among them some close to `right`; its lowest bits count few objects.
std::vector<std::uint64_t> invented_handles(std::uint64_t right) {
  std::vector<std::uint64_t> handles = {1, 2, 0xffffffff, UINT64_MAX, UINT64_MAX >> 8};
  for (int bit = 8; bit < 64; ++bit) {
    handles.push_back(right ^ (std::uint64_t{1} << bit));
  }
  return handles;
}

}  // namespace

TEST_CASE("c abi: 0 is no handle") {
  CAbiSession session;
  for (const auto& uses : {runtime_uses(), kernel_uses(session), plan_uses(session)}) {
    for (const HandleUse& use : uses) {
      check_refused(use, 0);
      CHECK(last_message_has(use.name + " = 0: "));
    }
  }
}

TEST_CASE("c abi: a handle of another kind is refused") {
  CAbiSession session;
  const auto decode = right_mla_decode(session);
  const attnjit_kernel kernel = session.prepare(merge_of_parts);
  for (const HandleUse& use : runtime_uses()) {
    check_refused(use, kernel);
    check_refused(use, decode.handle);
  }
  for (const HandleUse& use : kernel_uses(session)) {
    check_refused(use, session.runtime);
    check_refused(use, decode.handle);
  }
  for (const HandleUse& use : plan_uses(session)) {
    check_refused(use, session.runtime);
    check_refused(use, kernel);
  }
  for (const std::uint64_t handle : {kernel, decode.handle}) {
    CHECK(attnjit_runtime_destroy(handle) == ATTNJIT_INVALID_ARGUMENT);
  }
  CHECK(attnjit_kernel_release(session.runtime) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(attnjit_plan_destroy(kernel) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(decode(decode.call) == ATTNJIT_OK);
}

TEST_CASE("c abi: an invented handle is refused") {
  CAbiSession session;
  const auto decode = right_mla_decode(session);
  const attnjit_kernel kernel = session.prepare(merge_of_parts);
  for (const std::uint64_t handle : invented_handles(session.runtime)) {
    check_refused(runtime_uses().back(), handle);
    CHECK(attnjit_runtime_destroy(handle) == ATTNJIT_INVALID_ARGUMENT);
  }
  const HandleUse kernel_use = kernel_uses(session).back();
  for (const std::uint64_t handle : invented_handles(kernel)) {
    check_refused(kernel_use, handle);
    CHECK(attnjit_kernel_release(handle) == ATTNJIT_INVALID_ARGUMENT);
  }
  const HandleUse plan_use = plan_uses(session).back();
  for (const std::uint64_t handle : invented_handles(decode.handle)) {
    check_refused(plan_use, handle);
    CHECK(attnjit_plan_destroy(handle) == ATTNJIT_INVALID_ARGUMENT);
  }
}

TEST_CASE("c abi: a handle is stale after its end, also when its place has been given again") {
  CAbiSession session;
  const attnjit_kernel kernel = session.prepare(merge_of_parts);
  const attnjit_plan plan = session.make_plan(mla_decode, 1);
  attnjit_runtime runtime = 0;
  const attnjit_runtime_options options = session_options();
  REQUIRE(attnjit_runtime_create(&options, &runtime) == ATTNJIT_OK);
  REQUIRE(attnjit_kernel_release(kernel) == ATTNJIT_OK);
  REQUIRE(attnjit_plan_destroy(plan) == ATTNJIT_OK);
  REQUIRE(attnjit_runtime_destroy(runtime) == ATTNJIT_OK);
  const auto check_all = [&] {
    check_refused(runtime_uses().back(), runtime);
    check_refused(kernel_uses(session).back(), kernel);
    check_refused(plan_uses(session).back(), plan);
    CHECK(attnjit_kernel_release(kernel) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(attnjit_plan_destroy(plan) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(attnjit_runtime_destroy(runtime) == ATTNJIT_INVALID_ARGUMENT);
  };
  check_all();
  std::vector<std::uint64_t> later;
  for (int i = 0; i < 100; ++i) {
    later.push_back(session.prepare(merge_of_parts));
    later.push_back(session.make_plan(mla_decode, 1));
  }
  check_all();
  for (const std::uint64_t handle : later) {
    CHECK(handle != kernel);
    CHECK(handle != plan);
  }
}

TEST_CASE("c abi: a kernel of one operation is not run by the call of another") {
  CAbiSession session;
  const attnjit_kernel merge = session.prepare(merge_of_parts);
  const auto prefill = right_ragged_prefill(session);
  CHECK(prefill.run(merge, &prefill.call) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(
      last_message_has("kernel = one of operation merge_states: is none that attnjit_prefill "
                       "takes; fix: "));
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.max_batch = 1;
  attnjit_plan plan = 0;
  CHECK(attnjit_plan_create(merge, &options, &plan) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(plan == 0);
  for_each_right_call(session, [&](const auto& right) {
    using Call = std::decay_t<decltype(right.call)>;
    if constexpr (!std::is_same_v<Call, attnjit_prefill_call> &&
                  !std::is_same_v<Call, attnjit_decode_call>) {
      CHECK(right.run(prefill.handle, &right.call) == ATTNJIT_INVALID_ARGUMENT);
      CHECK(last_message_has("kernel = one of operation prefill: is none that "));
    }
  });
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: kernels and plans outlive the runtime and the kernel that they were made with") {
  attnjit_plan plan = 0;
  CAbiSession last;
  auto decode = right_mla_decode(last);
  auto merge = right_merge(last);
  {
    CAbiSession session;
    plan = session.make_plan(mla_decode, 2);
    merge.handle = session.prepare(merge_of_parts);
  }
  REQUIRE(attnjit_plan_update(plan, static_cast<const int*>(device_address(0)), 2, nullptr) ==
          ATTNJIT_OK);
  CHECK(decode.run(plan, &decode.call) == ATTNJIT_OK);
  CHECK(merge(merge.call) == ATTNJIT_OK);
}
