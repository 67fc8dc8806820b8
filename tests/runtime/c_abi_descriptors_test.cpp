// What the C interface says of descriptors, and what it makes of them without a GPU.
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

// Of a descriptor, by every function that takes one.
void check_refused(CAbiSession& session, const char* descriptor, const Names& fields) {
  const auto check = [&](attnjit_status status) {
    INFO(descriptor << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_INVALID_DESCRIPTOR);
    CHECK(violated_fields() == fields);
  };
  attnjit_kernel kernel = 77;
  std::int32_t number = 77;
  std::size_t bytes = 77;
  check(attnjit_validate(descriptor));
  check(attnjit_warm(session.runtime, descriptor, "h100", &number));
  check(attnjit_source(session.runtime, descriptor, "h100", nullptr, 0, &bytes));
  check(attnjit_prepare(session.runtime, descriptor, nullptr, &kernel));
  CHECK(kernel == 0);
  CHECK(number == 77);
  CHECK(bytes == 77);
}

}  // namespace

TEST_CASE("c abi: descriptors that some kernel serves are valid") {
  for (const char* descriptor :
       {mla_decode, gqa_decode, ragged_prefill, paged_prefill, rope_prefill, sparse_decode,
        sparse_prefill, append_to_cache, merge_of_parts, "{}"}) {
    const attnjit_status status = attnjit_validate(descriptor);
    INFO(descriptor << ": " << attnjit_last_message());
    CHECK(status == ATTNJIT_OK);
    CHECK(std::string(attnjit_last_message()).empty());
    CHECK(std::string(attnjit_last_violations()) == "[]");
  }
}

TEST_CASE("c abi: all that is wrong with a descriptor is listed, once and by field") {
  CAbiSession session;
  check_refused(session, R"({"head_dim": 128, "num_q_heads": "8", "mask": "diagonal"})",
                {"num_q_heads", "mask", "head_dim"});
  check_refused(session, R"({"head_dim_qk": 100, "topk": 5, "page_size": 0})",
                {"head_dim_qk", "page_size", "topk"});
  check_refused(session, R"({"mask": "chunked", "chunk_size": 64, "score_modifier": "alibi"})",
                {"mask", "score_modifier"});
}

TEST_CASE("c abi: text that is no JSON object is an invalid descriptor, never a crash") {
  CAbiSession session;
  const std::string deep(100000, '[');
  for (const char* text : {"", " ", "{", "[]", "7", "null", "\"decode\"", "{\"mask\"}", "{}{}",
                           "{\"page_size\": 1e400}", "{\"page_size\": 99999999999999999999}",
                           "\xff\xfe", "{\"mask\": \"\xff\"}", deep.c_str()}) {
    INFO(std::string(text).substr(0, 50));
    CHECK(attnjit_validate(text) == ATTNJIT_INVALID_DESCRIPTOR);
    CHECK_FALSE(violated_fields().empty());
    attnjit_kernel kernel = 0;
    CHECK(attnjit_prepare(session.runtime, text, nullptr, &kernel) == ATTNJIT_INVALID_DESCRIPTOR);
  }
}

TEST_CASE("c abi: an unknown architecture is refused with those that are known") {
  CAbiSession session;
  std::size_t bytes = 0;
  for (const char* arch : {"", "sm_12345", "h100 "}) {
    CHECK(attnjit_warm(session.runtime, mla_decode, arch, nullptr) == ATTNJIT_INVALID_ARGUMENT);
    CHECK(last_message_has("arch = \"" + std::string(arch) + "\": must be a card or an arch: "));
    CHECK(last_message_has("h200 (sm_90a)"));
    CHECK(attnjit_source(session.runtime, mla_decode, arch, nullptr, 0, &bytes) ==
          ATTNJIT_INVALID_ARGUMENT);
  }
}

TEST_CASE("c abi: warming compiles what the cache lacks, and counts it") {
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  CAbiSession session([&](auto& options) { options.cache_directory = directory.c_str(); });
  std::int32_t compiled = 0;
  REQUIRE(attnjit_warm(session.runtime, merge_of_parts, "sm_80", &compiled) == ATTNJIT_OK);
  CHECK(compiled == 1);
  REQUIRE(attnjit_warm(session.runtime, merge_of_parts, "sm_80", &compiled) == ATTNJIT_OK);
  CHECK(compiled == 0);
  CHECK(attnjit_warm(session.runtime, merge_of_parts, "sm_80", nullptr) == ATTNJIT_OK);
  CHECK(session.mock.loaded_cubins.empty());
}

TEST_CASE("c abi: the source of all kernels of a descriptor is cut to the caller's buffer") {
  CAbiSession session;
  std::size_t bytes = 0;
  REQUIRE(attnjit_source(session.runtime, mla_decode, "h200", nullptr, 0, &bytes) == ATTNJIT_OK);
  std::string whole(bytes, '?');
  REQUIRE(attnjit_source(session.runtime, mla_decode, "h200", whole.data(), bytes, &bytes) ==
          ATTNJIT_OK);
  CHECK(bytes == whole.size());
  CHECK(whole.find('\0') == bytes - 1);
  for (const char* part : {"swapped_decode_sm90", "combine_splits", "schedule_decode"}) {
    CHECK(whole.find(part) != std::string::npos);
  }
  std::string cut(12, '?');
  REQUIRE(attnjit_source(session.runtime, mla_decode, "h200", cut.data(), 10, &bytes) ==
          ATTNJIT_OK);
  CHECK(bytes == whole.size());
  CHECK(cut == whole.substr(0, 9) + '\0' + "??");
  REQUIRE(attnjit_source(session.runtime, mla_decode, "h200", cut.data(), 1, &bytes) == ATTNJIT_OK);
  CHECK(cut[0] == '\0');
}

TEST_CASE("c abi: what does not compile is told with its log, also the second time") {
  CAbiSession session;
  const char* const descriptor =
      R"json({"operation": "prefill", "max_seqlen_q": 0, "kv_layout": "ragged",
              "kv_layout_tag": "thd", "page_size": 0, "mask": "custom",
              "mask_expression": "no_such_name(q, k)"})json";
  for (int i = 0; i < 2; ++i) {
    CHECK(attnjit_warm(session.runtime, descriptor, "sm_80", nullptr) == ATTNJIT_COMPILE_FAILED);
    CHECK(last_message_has("no_such_name"));
  }
}

TEST_CASE("c abi: a compiler that is not there is told where it was looked for") {
  const ScratchDirectory empty;
  const std::string directory = empty.path().string();
  CAbiSession session([&](auto& options) {
    options.cache_directory = directory.c_str();
    options.nvrtc = directory.c_str();
  });
  CHECK(attnjit_warm(session.runtime, merge_of_parts, "sm_80", nullptr) == ATTNJIT_NO_TOOLCHAIN);
  CHECK(last_message_has(directory));
}

TEST_CASE("c abi: a directory that holds no templates is refused when the runtime is made") {
  const ScratchDirectory empty;
  const std::string directory = empty.path().string();
  attnjit_runtime_options options = session_options();
  options.templates = directory.c_str();
  attnjit_runtime runtime = 77;
  CHECK(attnjit_runtime_create(&options, &runtime) == ATTNJIT_INVALID_TEMPLATES);
  CHECK(runtime == 0);
  CHECK(last_message_has(directory));
}

TEST_CASE("c abi: statuses have names, versions are those of the header") {
  CHECK(std::string(attnjit_status_name(ATTNJIT_OK)) == "ATTNJIT_OK");
  CHECK(std::string(attnjit_status_name(ATTNJIT_NOT_STORED)) == "ATTNJIT_NOT_STORED");
  for (const attnjit_status status : {-1, 14, INT32_MAX, INT32_MIN}) {
    CHECK(std::string(attnjit_status_name(status)) == "unknown status");
  }
  CHECK(attnjit_abi_version() == ATTNJIT_ABI_VERSION);
  CHECK(std::string(attnjit_version()) == ATTNJIT_EXPECTED_VERSION);
}
