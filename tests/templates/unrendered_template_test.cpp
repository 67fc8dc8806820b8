// Every template as it stands, beside the recorded kernel_config.cuh of tests/golden: it must
// compile without the renderer, by nvcc and by NVRTC, and need no local memory.
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "attnjit/template_library.hpp"
#include "catch.hpp"
#include "nvcc.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;
namespace fs = std::filesystem;

const fs::path source_dir = ATTNJIT_SOURCE_DIR;

// Templates of a later family do not compile for an earlier one; combine_splits is recorded as it
// is rendered for Hopper, where it overlaps the attention kernel.
std::vector<std::string> architectures_of(const std::string& name) {
  const bool is_for_hopper = name.ends_with("_sm90") || name == "combine_splits";
  return is_for_hopper ? std::vector<std::string>{"sm_90a"}
                       : std::vector<std::string>{"sm_80", "sm_90a"};
}

// "paged_decode_sm80" and so on: one per file in templates/kernels.
std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir / "templates/kernels")) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

RenderedKernel unrendered(const std::string& name, const std::string& arch) {
  RenderedKernel kernel;
  kernel.name = name;
  kernel.entry = name;
  kernel.arch = arch;
  kernel.config = "{}";
  const TemplateLibrary library = TemplateLibrary::from_directory(source_dir / "templates");
  for (const auto& [path, text] : library.files()) {
    if (path == "kernels/" + name + ".cu") {
      kernel.source = text;
    } else {
      kernel.headers.push_back({path, text});
    }
  }
  kernel.headers.push_back(
      {"kernel_config.cuh", read_text(source_dir / "tests/golden" / name / "kernel_config.cuh")});
  return kernel;
}

TEST_CASE("every template has a recorded config to stand on") {
  CHECK(template_names().size() >= 3);
  for (const std::string& name : template_names()) {
    CHECK(fs::exists(source_dir / "tests/golden" / name / "kernel_config.cuh"));
  }
}

// A block that ended before would let the kernel after it begin while the one before still runs.
TEST_CASE("the combine kernel waits for the attention kernel before any of its blocks may end") {
  const std::string text = read_text(source_dir / "templates/kernels/combine_splits.cu");
  const std::size_t entry = text.find("extern \"C\" __global__");
  REQUIRE(entry != std::string::npos);
  const std::size_t waits = text.find("wait_for_attention();", entry);
  REQUIRE(waits != std::string::npos);
  CHECK(text.find("return", entry) > waits);
}

TEST_CASE("nvcc compiles every template as it stands, without spills") {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    WARN("no nvcc on this machine: only NVRTC compiles the templates as they stand");
    return;
  }
  for (const std::string& name : template_names()) {
    for (const std::string& arch : architectures_of(name)) {
      const std::string log =
          compile_with_nvcc(nvcc, source_dir / "templates/kernels" / (name + ".cu"),
                            {source_dir / "templates", source_dir / "tests/golden" / name}, arch);
      CHECK(!log.starts_with("failed: "));
      CHECK(log.find("Compiling entry function '" + name + "'") != std::string::npos);
      CHECK(log.find("warning") == std::string::npos);
      CHECK(nonzero_local_memory(log) == std::vector<std::string>{});
    }
  }
}

TEST_CASE("NVRTC compiles every template as it stands, without spills") {
  const NvrtcCompiler compiler;
  for (const std::string& name : template_names()) {
    for (const std::string& arch : architectures_of(name)) {
      const RenderedKernel kernel = unrendered(name, arch);
      const CompiledKernel compiled = compiler.compile(
          kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
      CHECK(!compiled.cubin.empty());
      CHECK(compiled.resources.registers > 0);
      CHECK(compiled.resources.stack_frame_bytes == 0);
      CHECK(compiled.resources.spill_store_bytes == 0);
      CHECK(compiled.resources.spill_load_bytes == 0);
      CHECK(compiled.notes.empty());
    }
  }
}

TEST_CASE("a shared-memory plan that disagrees with the kernel does not compile") {
  const NvrtcCompiler compiler;
  RenderedKernel kernel = unrendered("paged_decode_sm80", "sm_80");
  std::string& config = kernel.headers.back().text;
  const std::regex size("shared_memory_bytes = ([0-9]+)");
  config = std::regex_replace(config, size, "shared_memory_bytes = 1024");
  std::string message;
  try {
    compiler.compile(
        kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
  } catch (const CompileError& error) {
    message = error.what();
  }
  CHECK(message.find("the host's shared-memory plan differs from SharedStorage") !=
        std::string::npos);
}

}  // namespace
