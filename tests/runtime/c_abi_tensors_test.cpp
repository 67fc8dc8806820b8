// Tensors of the C interface that are none: their type, their rank, where they lie.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "catch.hpp"

using namespace attnjit::test;

namespace {

using Names = std::vector<std::string>;

// What malloc gives, which no GPU reads.
class HostMemory {
 public:
  void* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_{std::aligned_alloc(256, 4096)};
};

template <typename Call>
bool is_given(const RightCall<Call>& right, const TensorField<Call>& field) {
  return (right.call.*field.member).data != nullptr;
}

}  // namespace

TEST_CASE("c abi: host memory is refused for every tensor of every call, by its name") {
  CAbiSession session;
  const HostMemory host;
  for_each_right_call(session, [&](const auto& right) {
    auto all = right.call;
    Names expected;
    for (const auto& field : right.tensors) {
      auto one = right.call;
      (one.*field.member).data = (all.*field.member).data = host.data();
      expected.push_back(field.name + std::string(".data"));
      INFO(right.operation << " " << field.name);
      CHECK(right(one) == ATTNJIT_INVALID_CALL);
      CHECK(violated_fields() == Names{expected.back()});
      CHECK(last_message_has("must be device memory, or host memory that CUDA knows"));
    }
    CHECK(right(all) == ATTNJIT_INVALID_CALL);
    CHECK(violated_fields() == expected);
  });
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: host memory is refused for workspaces, lengths and parts of a merge") {
  CAbiSession session;
  const HostMemory host;
  const auto decode = right_mla_decode(session);
  CHECK(attnjit_decode(decode.handle, &decode.call, host.data(), 1 << 30, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace.data"});
  CHECK(attnjit_plan_update(decode.handle, static_cast<const int*>(host.data()), 2, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"seq_lens.data"});
  const auto prefill = right_ragged_prefill(session);
  CHECK(attnjit_prefill(prefill.handle, &prefill.call, nullptr, host.data(), 0, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"workspace.data"});
  auto merge = right_merge(session);
  std::vector<attnjit_partial_attention> parts(merge.call.partials, merge.call.partials + 2);
  parts[1].lse.data = host.data();
  merge.call.partials = parts.data();
  CHECK(merge(merge.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"partials[1].lse.data"});
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: lengths of a plan that cannot be are refused by their place") {
  CAbiSession session;
  const auto decode = right_mla_decode(session);
  const std::array<int, 3> lengths = {4, 0, -1};
  CHECK(attnjit_plan_update_from_host(decode.handle, lengths.data(), 2, nullptr) == ATTNJIT_OK);
  CHECK(attnjit_plan_update_from_host(decode.handle, lengths.data() + 1, 2, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"seq_lens[1]"});
  for (const int batch : {0, -3}) {
    CHECK(attnjit_plan_update_from_host(decode.handle, lengths.data(), batch, nullptr) ==
          ATTNJIT_INVALID_CALL);
    CHECK(violated_fields() == Names{"batch"});
  }
  const std::size_t launches = session.mock.launches.size();
  const auto odd = reinterpret_cast<std::uintptr_t>(decode.call.seq_lens.data) + 2;
  CHECK(attnjit_plan_update(decode.handle, reinterpret_cast<const int*>(odd), 2, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"seq_lens"});
  CHECK(session.mock.launches.size() == launches);
}

TEST_CASE("c abi: a runtime that trusts pointers takes host memory everywhere") {
  CAbiSession session([](auto& options) { options.trusts_pointers = 1; });
  const HostMemory host;
  std::size_t calls = 0;
  for_each_right_call(session, [&](const auto& right) {
    auto call = right.call;
    for (const auto& field : right.tensors) {
      if (is_given(right, field)) {
        (call.*field.member).data = host.data();
      }
    }
    const attnjit_status status = right(call);
    INFO(right.operation << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_OK);
    calls += session.take_launched_kernels().empty() ? 0 : 1;
  });
  CHECK(calls == 9);
  const auto decode = right_mla_decode(session);
  CHECK(attnjit_plan_update(decode.handle, static_cast<const int*>(host.data()), 2, nullptr) ==
        ATTNJIT_OK);
  CHECK(attnjit_decode(decode.handle, &decode.call, host.data(), std::int64_t{1} << 40, nullptr) ==
        ATTNJIT_OK);
}

TEST_CASE("c abi: an unknown element type is refused for every tensor of every call") {
  CAbiSession session;
  for_each_right_call(session, [&](const auto& right) {
    for (const auto& field : right.tensors) {
      for (const attnjit_dtype dtype : {-1, 8, std::numeric_limits<attnjit_dtype>::max(),
                                        std::numeric_limits<attnjit_dtype>::min()}) {
        auto call = right.call;
        (call.*field.member).dtype = dtype;
        INFO(right.operation << " " << field.name << " " << dtype);
        CHECK(right(call) == ATTNJIT_INVALID_CALL);
        CHECK(violated_fields() == Names{field.name + std::string(".dtype")});
      }
    }
  });
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: a rank that no tensor has is refused for every tensor of every call") {
  CAbiSession session;
  for_each_right_call(session, [&](const auto& right) {
    for (const auto& field : right.tensors) {
      for (const std::int32_t rank :
           {-1, ATTNJIT_MAX_RANK + 1, std::numeric_limits<std::int32_t>::max(),
            std::numeric_limits<std::int32_t>::min()}) {
        auto call = right.call;
        (call.*field.member).rank = rank;
        INFO(right.operation << " " << field.name << " " << rank);
        CHECK(right(call) == ATTNJIT_INVALID_CALL);
        CHECK(violated_fields() == Names{field.name + std::string(".rank")});
      }
    }
  });
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: an extent that is negative or more than memory has is refused, by its tensor") {
  CAbiSession session;
  for_each_right_call(session, [&](const auto& right) {
    for (const auto& field : right.tensors) {
      for (const std::int64_t extent :
           {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
            std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 54}) {
        auto call = right.call;
        attnjit_tensor& tensor = call.*field.member;
        if (tensor.data == nullptr) {
          continue;
        }
        tensor.shape[0] = extent;
        INFO(right.operation << " " << field.name << " " << extent);
        CHECK(right(call) == ATTNJIT_INVALID_CALL);
        const Names fields = violated_fields();
        CHECK(std::find(fields.begin(), fields.end(), field.name + std::string(".shape")) !=
              fields.end());
      }
    }
  });
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: all tensors that are wrong are listed at once") {
  CAbiSession session;
  auto right = right_mla_decode(session);
  right.call.q.dtype = 99;
  right.call.q.rank = 6;
  right.call.k_cache.data = &right;
  right.call.out.rank = -2;
  right.call.reserved = 7;
  CHECK(right(right.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"q.dtype", "q.rank", "k_cache.data", "out.rank", "reserved"});
}

TEST_CASE("c abi: tensors that contradict the descriptor are listed with what it wants") {
  CAbiSession session;
  auto right = right_mla_decode(session);
  right.call.q.shape[3] = 512;
  right.call.out.dtype = ATTNJIT_FP16;
  right.call.v_cache = right.call.k_cache;
  CHECK(right(right.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"q", "v_cache", "out"});
  CHECK(last_message_has("must have shape [2, 1, 16, 576]"));
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: a tensor without elements needs no memory, any other that is asked for does") {
  CAbiSession session;
  auto right = right_ragged_prefill(session);
  right.call.q = device_tensor(0, ATTNJIT_BF16, {0, 8, 128});
  right.call.out = device_tensor(0, ATTNJIT_BF16, {0, 8, 128});
  right.call.lse = device_tensor(0, ATTNJIT_FP32, {8, 0});
  right.call.q.data = right.call.out.data = right.call.lse.data = nullptr;
  CHECK(right(right.call) == ATTNJIT_OK);
  CHECK(session.mock.launches.empty());
  right = right_ragged_prefill(session);
  right.call.q.data = nullptr;
  CHECK(right(right.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == Names{"q"});
}
