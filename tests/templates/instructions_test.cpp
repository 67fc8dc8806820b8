// The wrappers of sm_90's instructions: a kernel that uses each of them compiles by nvcc and by
// NVRTC, in registers, and the assembler keeps wgmma asynchronous.
#include <filesystem>
#include <string>

#include "../cache/scratch_directory.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "catch.hpp"
#include "nvcc.hpp"

namespace {

using namespace attnjit;
namespace fs = std::filesystem;

const fs::path source_dir = ATTNJIT_SOURCE_DIR;
const fs::path source = source_dir / "tests/templates/instructions_sm90.cu";

CompiledKernel compile(const RenderedKernel& kernel) {
  const NvrtcCompiler compiler;
  return compiler.compile(
      kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
}

RenderedKernel render_instructions(const std::string& text) {
  return render_source("instructions_sm90", text, find_target_device("sm_90a").value(),
                       TemplateLibrary::from_directory(source_dir / "templates"));
}

TEST_CASE("every sm_90 header of the templates is used by the kernel that compiles them all") {
  const std::string text = test::read_text(source);
  int headers = 0;
  for (const auto& entry : fs::directory_iterator(source_dir / "templates/device")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("_sm90.cuh") && name != "wgmma_operands_sm90.cuh") {
      INFO(name);
      CHECK(text.find("#include \"device/" + name + "\"") != std::string::npos);
      ++headers;
    }
  }
  CHECK(headers >= 7);
}

TEST_CASE("NVRTC compiles every instruction of sm_90 without spills and notes") {
  const CompiledKernel compiled = compile(render_instructions(test::read_text(source)));
  CHECK(!compiled.cubin.empty());
  CHECK(compiled.resources.stack_frame_bytes == 0);
  CHECK(compiled.resources.spill_store_bytes == 0);
  CHECK(compiled.resources.spill_load_bytes == 0);
  CHECK(compiled.notes.empty());
}

TEST_CASE("nvcc compiles every instruction of sm_90 without spills and notes") {
  const std::string nvcc = test::find_nvcc();
  if (nvcc.empty()) {
    WARN("no nvcc on this machine: only NVRTC compiles the instructions of sm_90");
    return;
  }
  const std::string log =
      test::compile_with_nvcc(nvcc, source, {source_dir / "templates"}, "sm_90a");
  CHECK(log.find("Compiling entry function 'instructions_sm90'") != std::string::npos);
  CHECK(!log.starts_with("failed: "));
  CHECK(log.find("(C75") == std::string::npos);
  CHECK(log.find("warning") == std::string::npos);
  CHECK(test::nonzero_local_memory(log).empty());
}

// What wgmma<`arguments`> fails to compile with.
std::string refusal(const std::string& arguments, const std::string& count) {
  try {
    compile(render_instructions(
        "#include \"device/wgmma_sm90.cuh\"\n"
        "extern \"C\" __global__ void instructions_sm90(float* out) {\n"
        "  float d[" +
        count + "];\n  wgmma<" + arguments + ">(d, 0, 0, false);\n  out[0] = d[0];\n}\n"));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a wgmma that the hardware does not have does not compile, and says why") {
  CHECK(refusal("DataType::bf16, 72, Major::k, Major::k", "36")
            .find("n is a multiple of 8 up to 64") != std::string::npos);
  CHECK(refusal("DataType::fp8_e4m3, 64, Major::k, Major::mn", "32")
            .find("8-bit operands are K-major") != std::string::npos);
}

}  // namespace
