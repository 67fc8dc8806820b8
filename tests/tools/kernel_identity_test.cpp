#include "kernel_identity.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "command_line.hpp"
#include "filled_cache.hpp"
#include "near_kernels.hpp"

namespace attnjit {
namespace {

const std::string toolchain = "nvrtc 13.0 of a test";

RenderedKernel render_decode(int head_dim, const std::string& target = "h200") {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  const TargetDevice device = find_target_device(target).value();
  return render(select_configs(descriptor, device).front(), device, TemplateLibrary::embedded());
}

KernelIdentity identify(const RenderedKernel& kernel, const std::string& of = toolchain) {
  return identify_kernel(make_cache_key(kernel, compile_options(kernel, of), of).text,
                         kernel.config)
      .value();
}

std::vector<std::string> told(const KernelIdentity& left, const KernelIdentity& right) {
  std::vector<std::string> texts;
  for (const Difference& difference : find_differences(left, right)) {
    texts.push_back(describe(difference));
  }
  return texts;
}

}  // namespace

TEST_CASE("a key's text says toolchain, options, target and sources") {
  const RenderedKernel kernel = render_decode(128);
  const KernelIdentity identity = identify(kernel);
  CHECK(identity.toolchain == toolchain);
  CHECK(identity.options == compile_options(kernel, toolchain));
  CHECK(identity.kernel.arch == "sm_90a");
  CHECK(identity.kernel.source == kernel.source);
  CHECK(!identify_kernel("no key", "{}").has_value());
}

TEST_CASE("kernels that differ in one thing differ in that alone") {
  const RenderedKernel kernel = render_decode(128);
  CHECK(told(identify(kernel), identify(kernel)).empty());
  CHECK(told(identify(kernel), identify(kernel, "nvrtc 13.1 of a test")) ==
        std::vector<std::string>{"toolchain: nvrtc 13.0 of a test, there nvrtc 13.1 of a test"});
  CHECK(told(identify(kernel), identify(render_decode(128, "a100"))).front() ==
        "target: sm_90a, there sm_80");
  RenderedKernel edited = kernel;
  edited.source += "// edited\n";
  CHECK(told(identify(kernel), identify(edited)) == std::vector<std::string>{"source differs"});
  edited = kernel;
  for (SourceFile& header : edited.headers) {
    header.text += header.name == "device/mma_sm80.cuh" ? "// edited\n" : "";
  }
  CHECK(told(identify(kernel), identify(edited)) ==
        std::vector<std::string>{"header device/mma_sm80.cuh differs"});
}

TEST_CASE("fields of the config are told with both values") {
  const std::vector<std::string> texts =
      told(identify(render_decode(128)), identify(render_decode(64)));
  CHECK(texts.front() == "config head_dim_qk: 128, there 64");
  for (const std::string& text : texts) {
    CHECK(text.starts_with("config "));
  }
}

TEST_CASE("an option of older toolchains is told where it is missing") {
  const RenderedKernel kernel = render_decode(128);
  const std::vector<std::string> texts =
      told(identify(kernel), identify(kernel, "nvrtc 12.8 of a test"));
  CHECK(texts.at(1) == "option: --no-cache, there none");
}

TEST_CASE("near kernels are of one template, the nearest first, and not the kernel itself") {
  const TemporaryDirectory directory;
  test::fill_cache(directory.path());
  test::fill_cache(directory.path(), "nvrtc 12.8 of a test");
  test::fill_cache(directory.path(), toolchain, 0, "a100");
  const DiskCache cache(directory.path(), nullptr);
  const RenderedKernel kernel = render_decode(128);
  const auto near = find_near_kernels(cache, identify(kernel), 5);
  REQUIRE(near.size() == 2);
  CHECK(near.at(0).differences.size() <= near.at(1).differences.size());
  CHECK(find_near_kernels(cache, identify(kernel), 1).size() == 1);
}

}  // namespace attnjit
