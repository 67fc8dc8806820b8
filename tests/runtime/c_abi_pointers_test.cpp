// What the C interface says to null pointers, to structs of other versions, and to words that must
// be 0.
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "c_abi_calls.hpp"
#include "c_abi_session.hpp"
#include "catch.hpp"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::test;

namespace {

struct NullCase {
  std::string name;  // of the argument
  std::function<attnjit_status()> call;
};

void check_nulls(const std::vector<NullCase>& cases) {
  for (const NullCase& null : cases) {
    const attnjit_status status = null.call();
    INFO(null.name << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has(null.name + " = NULL: must be given; fix: "));
    CHECK(std::string(attnjit_last_violations()) == "[]");
  }
}

// Bytes behind the struct that a call must not look at, and a size that says so.
template <typename Struct>
struct LongerStruct {
  Struct known;
  std::array<std::byte, 64> of_a_newer_header;
};

// `run` takes a pointer to a struct of any size; `name` is that of the parameter.
template <typename Struct>
void check_sizes(const std::string& name, const Struct& right,
                 const std::function<attnjit_status(const Struct*)>& run) {
  REQUIRE(run(&right) == ATTNJIT_OK);
  LongerStruct<Struct> given = {right, {}};
  const std::size_t known = sizeof(Struct);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, sizeof(std::size_t) - 1, known - 1,
                                 known + 1, known + 64, std::numeric_limits<std::size_t>::max()}) {
    given.known.struct_size = size;
    const attnjit_status status = run(&given.known);
    INFO(name << " of size " << size << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has(name + "->struct_size = " + std::to_string(size) +
                           ": must be the size of the struct, at most " + std::to_string(known)));
  }
}

}  // namespace

TEST_CASE("c abi: null is refused wherever an address must be given, by its name") {
  CAbiSession session;
  const attnjit_runtime runtime = session.runtime;
  attnjit_kernel kernel = 0;
  std::size_t bytes = 0;
  std::array<char, 8> buffer = {};
  check_nulls({
      {"runtime", [] { return attnjit_runtime_create(nullptr, nullptr); }},
      {"descriptor", [] { return attnjit_validate(nullptr); }},
      {"descriptor", [&] { return attnjit_warm(runtime, nullptr, "h100", nullptr); }},
      {"arch", [&] { return attnjit_warm(runtime, mla_decode, nullptr, nullptr); }},
      {"descriptor",
       [&] { return attnjit_source(runtime, nullptr, "h100", buffer.data(), 8, &bytes); }},
      {"arch",
       [&] { return attnjit_source(runtime, mla_decode, nullptr, buffer.data(), 8, &bytes); }},
      {"buffer", [&] { return attnjit_source(runtime, mla_decode, "h100", nullptr, 8, &bytes); }},
      {"bytes",
       [&] { return attnjit_source(runtime, mla_decode, "h100", buffer.data(), 8, nullptr); }},
      {"descriptor", [&] { return attnjit_prepare(runtime, nullptr, nullptr, &kernel); }},
      {"kernel", [&] { return attnjit_prepare(runtime, mla_decode, nullptr, nullptr); }},
      {"descriptor",
       [&] {
         std::int32_t is_cold = 0;
         return attnjit_is_cold(runtime, nullptr, &is_cold);
       }},
      {"is_cold", [&] { return attnjit_is_cold(runtime, mla_decode, nullptr); }},
  });
}

TEST_CASE("c abi: null is refused for plans, calls and splits") {
  CAbiSession session;
  const auto decode = right_mla_decode(session);
  const auto prefill = right_ragged_prefill(session);
  const attnjit_kernel kernel = session.prepare(mla_decode);
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.max_batch = 1;
  attnjit_plan plan = 0;
  attnjit_prefill_split split = {};
  split.struct_size = sizeof split;
  check_nulls({
      {"options", [&] { return attnjit_plan_create(kernel, nullptr, &plan); }},
      {"plan", [&] { return attnjit_plan_create(kernel, &options, nullptr); }},
      {"bytes", [&] { return attnjit_plan_workspace_bytes(decode.handle, nullptr); }},
      {"seq_lens", [&] { return attnjit_plan_update(decode.handle, nullptr, 2, nullptr); }},
      {"seq_lens",
       [&] { return attnjit_plan_update_from_host(decode.handle, nullptr, 2, nullptr); }},
      {"call", [&] { return attnjit_prefill_plan(prefill.handle, nullptr, &split); }},
      {"split", [&] { return attnjit_prefill_plan(prefill.handle, &prefill.call, nullptr); }},
  });
  for_each_right_call(session, [&](const auto& right) {
    check_nulls({{"call", [&] { return right.run(right.handle, nullptr); }}});
  });
  auto merge = right_merge(session);
  merge.call.partials = nullptr;
  check_nulls({{"call->partials", [&] { return merge(merge.call); }}});
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: handles of 0 end quietly") {
  CHECK(attnjit_runtime_destroy(0) == ATTNJIT_OK);
  CHECK(attnjit_kernel_release(0) == ATTNJIT_OK);
  CHECK(attnjit_plan_destroy(0) == ATTNJIT_OK);
}

TEST_CASE("c abi: every struct says how large it is, and no larger than the library knows") {
  CAbiSession session;
  check_sizes<attnjit_runtime_options>("options", session_options(), [](const auto* options) {
    attnjit_runtime runtime = 0;
    const attnjit_status status = attnjit_runtime_create(options, &runtime);
    CHECK((status == ATTNJIT_OK) == (runtime != 0));
    return status == ATTNJIT_OK ? attnjit_runtime_destroy(runtime) : status;
  });
  const attnjit_kernel kernel = session.prepare(mla_decode);
  attnjit_plan_options plan_options = {};
  plan_options.struct_size = sizeof plan_options;
  plan_options.max_batch = 1;
  check_sizes<attnjit_plan_options>("options", plan_options, [&](const auto* options) {
    attnjit_plan plan = 0;
    const attnjit_status status = attnjit_plan_create(kernel, options, &plan);
    return status == ATTNJIT_OK ? attnjit_plan_destroy(plan) : status;
  });
  for_each_right_call(session, [&](const auto& right) {
    using Call = std::decay_t<decltype(right.call)>;
    check_sizes<Call>("call", right.call,
                      [&](const Call* call) { return right.run(right.handle, call); });
  });
}

TEST_CASE("c abi: the split of a prefill says how large it is") {
  CAbiSession session;
  const auto right = right_ragged_prefill(session);
  attnjit_prefill_split split = {};
  split.struct_size = sizeof split;
  split.num_splits = 1;
  check_sizes<attnjit_prefill_split>("split", split, [&](const auto* given) {
    return attnjit_prefill(right.handle, &right.call, given, nullptr, 0, nullptr);
  });
  check_sizes<attnjit_prefill_split>("split", split, [&](const auto* given) {
    return attnjit_prefill_plan(right.handle, &right.call,
                                const_cast<attnjit_prefill_split*>(given));
  });
}

TEST_CASE("c abi: what an older header does not know counts as 0, whatever lies there") {
  CAbiSession session;
  const auto right = right_mla_decode(session);
  attnjit_decode_call call = right.call;
  call.struct_size = offsetof(attnjit_decode_call, lse);
  std::memset(reinterpret_cast<std::byte*>(&call) + call.struct_size, 0xff,
              sizeof call - call.struct_size);
  const attnjit_status status = right(call);
  INFO(attnjit_last_message());
  REQUIRE(status == ATTNJIT_OK);
  const auto arguments =
      arguments_of<attnjit::kernel_interface::SwappedDecodeArguments>(session.mock.launches.at(0));
  CHECK(arguments.call.lse == nullptr);
  CHECK(arguments.call.softmax_scale == Approx(1.0 / 24.0));
}

TEST_CASE("c abi: runtime options of an older header keep the defaults of what they lack") {
  fresh_mock_of_library();
  attnjit_runtime_options options = session_options();
  options.struct_size = offsetof(attnjit_runtime_options, cache_layers);
  std::memset(reinterpret_cast<std::byte*>(&options) + options.struct_size, 0xff,
              sizeof options - options.struct_size);
  attnjit_runtime runtime = 0;
  REQUIRE(attnjit_runtime_create(&options, &runtime) == ATTNJIT_OK);
  CHECK(attnjit_warm(runtime, merge_of_parts, "h100", nullptr) == ATTNJIT_OK);
  CHECK(attnjit_runtime_destroy(runtime) == ATTNJIT_OK);
}

TEST_CASE("c abi: reserved words must be 0") {
  CAbiSession session;
  auto decode = right_mla_decode(session);
  decode.call.reserved = 1;
  CHECK(decode(decode.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == std::vector<std::string>{"reserved"});
  auto sparse = right_sparse_decode(session);
  sparse.call.reserved = -1;
  CHECK(sparse(sparse.call) == ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == std::vector<std::string>{"reserved"});
  const auto prefill = right_ragged_prefill(session);
  attnjit_prefill_split split = {};
  split.struct_size = sizeof split;
  split.num_splits = 1;
  split.reserved = 1;
  CHECK(attnjit_prefill(prefill.handle, &prefill.call, &split, nullptr, 0, nullptr) ==
        ATTNJIT_INVALID_CALL);
  CHECK(violated_fields() == std::vector<std::string>{"reserved"});
  CHECK(session.mock.launches.empty());
}

TEST_CASE("c abi: choices of runtime options are checked by their names") {
  const std::vector<std::pair<std::string, CAbiSession::Change>> changes = {
      {"options->device", [](auto& options) { options.device = -1; }},
      {"options->forbid_jit", [](auto& options) { options.forbid_jit = 2; }},
      {"options->cache_sharing", [](auto& options) { options.cache_sharing = 3; }},
      {"options->trusts_pointers", [](auto& options) { options.trusts_pointers = -1; }},
      {"options->cache_layers", [](auto& options) { options.num_cache_layers = 1; }},
  };
  for (const auto& [name, change] : changes) {
    attnjit_runtime_options options = session_options();
    change(options);
    attnjit_runtime runtime = 77;
    CHECK(attnjit_runtime_create(&options, &runtime) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(runtime == 0);
    INFO(attnjit_last_message());
    CHECK(last_message_has(name + " = "));
  }
  const char* layers[] = {nullptr};
  attnjit_runtime_options options = session_options();
  options.cache_layers = layers;
  options.num_cache_layers = 1;
  attnjit_runtime runtime = 0;
  CHECK(attnjit_runtime_create(&options, &runtime) == ATTNJIT_INVALID_ARGUMENT);
  CHECK(last_message_has("options->cache_layers[0] = NULL"));
}

TEST_CASE("c abi: a merge takes 1 to 32 parts") {
  CAbiSession session;
  auto right = right_merge(session);
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{33}, std::numeric_limits<std::size_t>::max()}) {
    right.call.num_partials = count;
    CHECK(right(right.call) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has("call->num_partials = " + std::to_string(count)));
  }
}
