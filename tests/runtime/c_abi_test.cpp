// The C interface as a program sees it that links libattnjit.so alone, on a driver without a GPU.
#include "attnjit/attnjit.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cache/scratch_directory.hpp"
#include "catch.hpp"
#include "mock_driver.hpp"

using namespace attnjit::test;

namespace {

constexpr const char* mla_decode =
    R"({"operation": "decode", "head_dim_qk": 576, "head_dim_v": 512, "num_q_heads": 16,
        "num_kv_heads": 1, "value_source": "prefix_of_k"})";

MockDriver& fresh_mock() {
  setenv("ATTNJIT_LIBCUDA", ATTNJIT_MOCK_DRIVER, 1);
  void* const library = dlopen(ATTNJIT_MOCK_DRIVER, RTLD_NOW);
  REQUIRE(library != nullptr);
  const auto get =
      reinterpret_cast<decltype(&attnjit_mock_driver)>(dlsym(library, "attnjit_mock_driver"));
  *get() = MockDriver{};
  return *get();
}

}  // namespace

TEST_CASE("a descriptor becomes a kernel, a plan and a launch") {
  MockDriver& mock = fresh_mock();
  const ScratchDirectory cache;
  const std::string directory = cache.path().string();
  attnjit_runtime_options options = {};
  options.struct_size = sizeof options;
  options.cache_directory = directory.c_str();
  attnjit_runtime runtime = 0;
  REQUIRE(attnjit_runtime_create(&options, &runtime) == ATTNJIT_OK);
  attnjit_kernel kernel = 0;
  const attnjit_status prepared = attnjit_prepare(runtime, mla_decode, nullptr, &kernel);
  INFO(attnjit_last_message());
  REQUIRE(prepared == ATTNJIT_OK);
  CHECK(mock.loaded_cubins.size() == 3);
}
