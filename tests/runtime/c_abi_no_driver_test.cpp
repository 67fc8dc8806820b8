// The C interface on a machine without a driver: all that needs no GPU works.
#include <cstdlib>
#include <string>

#include "attnjit/attnjit.h"
#include "cache/scratch_directory.hpp"
#include "catch.hpp"

using namespace attnjit::test;

namespace {

constexpr const char* merge_of_parts =
    R"({"operation": "merge_states", "num_q_heads": 1, "num_kv_heads": 1, "max_seqlen_q": 0})";

attnjit_runtime make_runtime(const ScratchDirectory& cache) {
  setenv("ATTNJIT_LIBCUDA", (cache.path() / "libcuda.so.1").c_str(), 1);
  const std::string directory = cache.path().string();
  attnjit_runtime_options options = {};
  options.struct_size = sizeof options;
  options.cache_directory = directory.c_str();
  attnjit_runtime runtime = 0;
  REQUIRE(attnjit_runtime_create(&options, &runtime) == ATTNJIT_OK);
  return runtime;
}

}  // namespace

TEST_CASE("c abi: without a driver kernels are validated, shown and warmed") {
  const ScratchDirectory cache;
  const attnjit_runtime runtime = make_runtime(cache);
  CHECK(attnjit_validate(merge_of_parts) == ATTNJIT_OK);
  std::size_t bytes = 0;
  CHECK(attnjit_source(runtime, merge_of_parts, "sm_90a", nullptr, 0, &bytes) == ATTNJIT_OK);
  CHECK(bytes > 1000);
  std::int32_t compiled = 0;
  CHECK(attnjit_warm(runtime, merge_of_parts, "sm_90a", &compiled) == ATTNJIT_OK);
  CHECK(compiled == 1);
  std::int32_t is_cold = 0;
  CHECK(attnjit_is_cold(runtime, merge_of_parts, &is_cold) == ATTNJIT_OK);
  CHECK(is_cold == 1);
  CHECK(attnjit_runtime_destroy(runtime) == ATTNJIT_OK);
}

TEST_CASE("c abi: without a driver nothing is prepared, each time with the reason") {
  const ScratchDirectory cache;
  const attnjit_runtime runtime = make_runtime(cache);
  for (void* stream : {static_cast<void*>(nullptr), reinterpret_cast<void*>(std::uintptr_t{8})}) {
    attnjit_kernel kernel = 77;
    CHECK(attnjit_prepare(runtime, merge_of_parts, stream, &kernel) == ATTNJIT_NO_DRIVER);
    CHECK(kernel == 0);
    CHECK(std::string(attnjit_last_message()).find("ATTNJIT_LIBCUDA") != std::string::npos);
  }
  CHECK(attnjit_runtime_destroy(runtime) == ATTNJIT_OK);
}
