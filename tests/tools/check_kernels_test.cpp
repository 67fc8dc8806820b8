// The device code of checks: every kernel compiles for what the suites run on.
#include "check_kernels.hpp"

#include "attnjit/kernel_key.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

TEST_CASE("every check kernel compiles for Ampere and Hopper, without spills") {
  const NvrtcCompiler compiler;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    for (const check::CheckKernelSource& source : check::check_kernel_sources) {
      INFO(arch << " " << source.entry);
      const RenderedKernel kernel = check::render_check_kernel(
          TemplateLibrary::embedded(), find_target_device(arch).value(), source);
      const CompiledKernel compiled = compiler.compile(
          kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
      CHECK(!compiled.cubin.empty());
      CHECK(compiled.resources.spill_store_bytes == 0);
      CHECK(compiled.resources.spill_load_bytes == 0);
      CHECK(compiled.notes.empty());
    }
  }
}

}  // namespace
}  // namespace attnjit
