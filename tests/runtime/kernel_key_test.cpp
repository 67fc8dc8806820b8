#include "attnjit/kernel_key.hpp"

#include "catch.hpp"
#include "sample_kernels.hpp"

#include <functional>
#include <set>

using namespace attnjit;
using namespace attnjit::test;

namespace {

constexpr const char* toolchain = "nvrtc 13.0 library a builtins b appended_flags []";

CacheKey key_of(const RenderedKernel& kernel) {
  return make_cache_key(kernel, compile_options(kernel, toolchain), toolchain);
}

}  // namespace

TEST_CASE("complete key: one kernel has one key, whatever the directory and environment") {
  CHECK(key_of(sample_kernel()) == key_of(sample_kernel()));
}

TEST_CASE("complete key: every byte that the compiler sees changes the key") {
  const std::vector<std::function<void(RenderedKernel&)>> changes = {
      [](RenderedKernel& kernel) { kernel.arch = "sm_90"; },
      [](RenderedKernel& kernel) { kernel.entry += "x"; },
      [](RenderedKernel& kernel) { kernel.source += "\n"; },
      [](RenderedKernel& kernel) { kernel.headers[0].name += "x"; },
      [](RenderedKernel& kernel) { kernel.headers[1].text += "x"; },
      [](RenderedKernel& kernel) { kernel.headers.pop_back(); },
      [](RenderedKernel& kernel) { std::swap(kernel.headers[0], kernel.headers[1]); },
  };
  std::set<std::string> digests = {key_of(sample_kernel()).digest};
  std::set<std::string> records = {make_toolchain_record_key(sample_kernel()).digest};
  for (const auto& change : changes) {
    RenderedKernel kernel = sample_kernel();
    change(kernel);
    CHECK(digests.insert(key_of(kernel).digest).second);
    CHECK(records.insert(make_toolchain_record_key(kernel).digest).second);
  }
}

TEST_CASE("complete key: toolchain, options and their order change the key") {
  const RenderedKernel kernel = sample_kernel();
  const std::set<std::string> digests = {
      make_cache_key(kernel, {"-a", "-b"}, toolchain).digest,
      make_cache_key(kernel, {"-b", "-a"}, toolchain).digest,
      make_cache_key(kernel, {"-a"}, toolchain).digest,
      make_cache_key(kernel, {"-a-b"}, toolchain).digest,
      make_cache_key(kernel, {"-a", "-b"}, std::string(toolchain) + "x").digest,
  };
  CHECK(digests.size() == 5);
}

TEST_CASE("complete key: bytes moved from one section to the next change the key") {
  RenderedKernel left = sample_kernel();
  RenderedKernel right = sample_kernel();
  left.headers = {{"ab", "c"}};
  right.headers = {{"a", "bc"}};
  CHECK(key_of(left).digest != key_of(right).digest);
}

TEST_CASE("what a launch needs but no compiler sees does not change the key") {
  RenderedKernel kernel = sample_kernel();
  kernel.name = "renamed";
  kernel.num_threads = 64;
  CHECK(key_of(kernel) == key_of(sample_kernel()));
}

TEST_CASE("options follow the version that the toolchain identity names") {
  const auto has_no_cache = [](const char* identity) {
    const auto options = compile_options(sample_kernel(), identity);
    return std::find(options.begin(), options.end(), "--no-cache") != options.end();
  };
  CHECK(has_no_cache("nvrtc 13.0 library a"));
  CHECK(has_no_cache("nvrtc 12.9 library a"));
  CHECK(!has_no_cache("nvrtc 12.8 library a"));
  CHECK(compile_options(sample_kernel("sm_80"), toolchain).front() == "--gpu-architecture=sm_80");
}
