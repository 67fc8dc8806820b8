// Every template as it stands, beside the recorded kernel_config.cuh of tests/golden: it must
// compile without the renderer, by nvcc and by NVRTC, and need no local memory.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "attnjit/template_library.hpp"
#include "catch.hpp"

namespace {

using namespace attnjit;
using attnjit::test::read_text;
namespace fs = std::filesystem;

const fs::path source_dir = ATTNJIT_SOURCE_DIR;
constexpr const char* architectures[] = {"sm_80", "sm_90a"};

// "paged_decode_sm80" and so on: one per file in templates/kernels.
std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir / "templates/kernels")) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

// The nvcc that a user's shell would find, "" if there is none that runs: a wrapper can outlive its
// toolkit.
std::string find_nvcc() {
  std::vector<std::string> candidates;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable)) {
      candidates.push_back((fs::path(root) / "bin/nvcc").string());
    }
  }
  candidates.emplace_back("/usr/local/cuda/bin/nvcc");
  candidates.emplace_back("nvcc");
  for (const std::string& candidate : candidates) {
    if (std::system(("\"" + candidate + "\" --version > /dev/null 2>&1").c_str()) == 0) {
      return candidate;
    }
  }
  return "";
}

// What the assembler says of local memory; a kernel that spills nothing has zeros only.
std::vector<std::string> nonzero_local_memory(const std::string& log) {
  static const std::regex remark("([0-9]+) bytes (stack frame|spill stores|spill loads)");
  std::vector<std::string> found;
  for (std::sregex_iterator match(log.begin(), log.end(), remark), end; match != end; ++match) {
    if ((*match)[1] != "0") {
      found.push_back(match->str());
    }
  }
  return found;
}

// Compiles with nvcc into nothing; the log, opened by "failed" if it does not compile.
std::string compile_with_nvcc(const std::string& nvcc, const std::string& name,
                              const std::string& arch) {
  const test::ScratchDirectory scratch;
  const fs::path log = scratch.path() / "log";
  const std::string command = "\"" + nvcc + "\" -std=c++17 -cubin -arch=" + arch +
                              " -Xptxas -v -I \"" + (source_dir / "templates").string() +
                              "\" -I \"" + (source_dir / "tests/golden" / name).string() +
                              "\" -o \"" + (scratch.path() / "cubin").string() + "\" \"" +
                              (source_dir / "templates/kernels" / (name + ".cu")).string() +
                              "\" > \"" + log.string() + "\" 2>&1";
  const int status = std::system(command.c_str());
  const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return (succeeded ? "" : "failed: ") + read_text(log);
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

TEST_CASE("nvcc compiles every template as it stands, without spills") {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    WARN("no nvcc on this machine: only NVRTC compiles the templates as they stand");
    return;
  }
  for (const std::string& name : template_names()) {
    for (const char* arch : architectures) {
      const std::string log = compile_with_nvcc(nvcc, name, arch);
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
    for (const char* arch : architectures) {
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
