#include "attnjit/nvrtc_compiler.hpp"

#include <clocale>
#include <cstdlib>
#include <locale>
#include <stdexcept>

#include "../cache/scratch_directory.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_provider.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "cubin_inspection.hpp"
#include "sample_kernels.hpp"

using namespace attnjit;
using namespace attnjit::test;

namespace fs = std::filesystem;

namespace {

// Opened once: the tests share what the library does too.
const NvrtcCompiler& nvrtc() {
  static const NvrtcCompiler compiler;
  return compiler;
}

CompiledKernel compile(const RenderedKernel& kernel) {
  return nvrtc().compile(
      kernel, make_cache_key(kernel, nvrtc().options(kernel), nvrtc().toolchain_identity()));
}

bool supports(int architecture) {
  const std::vector<int> known = nvrtc().supported_architectures();
  return std::find(known.begin(), known.end(), architecture) != known.end();
}

// Runs in a child whose working directory has a header of the same name as one in memory, and one
// that no kernel brings.
int compile_in_other_directory(const fs::path& directory, const std::string& expected) {
  fs::create_directories(directory / "device");
  write_text(directory / "device" / "scale.cuh", "#error picked up from the working directory\n");
  write_text(directory / "stray.cuh", "\n");
  fs::current_path(directory);
  RenderedKernel stray = sample_kernel();
  stray.source = "#include \"stray.cuh\"\n" + stray.source;
  const bool is_same = compile(sample_kernel()).cubin == expected;
  const bool is_refused =
      contains(message_of<CompileError>([&] { compile(stray); }), "\"stray.cuh\"");
  return (is_same ? 0 : 1) + (is_refused ? 0 : 2);
}

// Numbers as in "1.234,5".
class CommaPunctuation final : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// The key and the cubin of a decode's combine kernel, from its descriptor on.
std::string make_from_descriptor() {
  AttentionDescriptor descriptor;
  descriptor.has_sinks = true;
  const TargetDevice target = find_target_device("h200").value();
  const TemplateLibrary library = TemplateLibrary::open({});
  for (const KernelConfig& config : select_configs(descriptor, target)) {
    if (role_of(config) == KernelRole::combine) {
      const RenderedKernel kernel = render(config, target, library);
      const CacheKey key =
          make_cache_key(kernel, nvrtc().options(kernel), nvrtc().toolchain_identity());
      return key.digest + nvrtc().compile(kernel, key).cubin;
    }
  }
  throw std::runtime_error("no combine kernel");
}

// Runs in a child: as somebody else, elsewhere, where numbers look otherwise.
int make_as_somebody_else(const fs::path& directory, const std::string& expected) {
  become_user(65534);
  fs::current_path(directory);
  setenv("HOME", "/nonexistent", 1);
  setenv("LC_ALL", "de_DE.UTF-8", 1);
  std::setlocale(LC_ALL, "");  // of the C library, where it is installed
  std::locale::global(std::locale(std::locale::classic(), new CommaPunctuation));
  return make_from_descriptor() == expected ? 0 : 1;
}

}  // namespace

TEST_CASE("NVRTC compiles a kernel and its in-memory headers for each architecture") {
  for (const auto& [arch, number] : {std::pair("sm_80", 80), std::pair("sm_90a", 90),
                                     std::pair("sm_100", 100), std::pair("sm_120", 120)}) {
    if (!supports(number)) {
      WARN("NVRTC " << nvrtc().version() << " does not know " << arch);
      continue;
    }
    const CompiledKernel compiled = compile(sample_kernel(arch));
    CHECK(!cubin_problem(compiled.cubin, arch, "sample_entry"));
    CHECK(compiled.resources.registers > 0);
    CHECK(compiled.resources.spill_store_bytes == 0);
    CHECK(compiled.milliseconds > 0);
    CHECK(compiled.notes.empty());
  }
}

TEST_CASE(
    "deterministic output: a cubin has the same bytes in another process and working directory") {
  const ScratchDirectory scratch;
  const std::string expected = compile(sample_kernel()).cubin;
  CHECK(run_in_child([&] { return compile_in_other_directory(scratch.path(), expected); }) == 0);
}

TEST_CASE("deterministic output: another user, directory and locale give the same key and cubin") {
  const ScratchDirectory scratch;
  const std::string expected = make_from_descriptor();
  const int status = run_in_child([&] { return make_as_somebody_else(scratch.path(), expected); });
  if (status == not_permitted) {
    WARN("this process may not become another user");
  } else {
    CHECK(status == 0);
  }
}

TEST_CASE("good errors: a compile error shows config, options, log and numbered lines") {
  RenderedKernel kernel = sample_kernel();
  kernel.headers[1].text = "#pragma once\nconstexpr float factor = three;\n";
  const std::string message = message_of<CompileError>([&] { compile(kernel); });
  CHECK(contains(message, "kernel sample does not compile for sm_90a"));
  CHECK(contains(message, kernel.config));
  CHECK(contains(message, "--gpu-architecture=sm_90a -std=c++17"));
  CHECK(contains(message, "identifier \"three\" is undefined"));
  CHECK(contains(message, ">     2 | constexpr float factor = three;"));
}

TEST_CASE("good errors: what the assembler refuses is a compile error with its words") {
  RenderedKernel kernel = sample_kernel();
  kernel.source =
      "extern \"C\" __global__ void sample_entry() {\n"
      "  __shared__ volatile float tile[100000];\n"
      "  tile[threadIdx.x] = 1.0f;\n"
      "}\n";
  CHECK(contains(message_of<CompileError>([&] { compile(kernel); }), "too much shared data"));
}

TEST_CASE("good errors: a kernel without the promised entry point is a compile error") {
  RenderedKernel kernel = sample_kernel();
  kernel.entry = "renamed_entry";
  CHECK(contains(message_of<CompileError>([&] { compile(kernel); }),
                 "holds no kernel renamed_entry, only: sample_entry"));
}

TEST_CASE(
    "good errors: a target that NVRTC does not know is a toolchain error that says what it knows") {
  const std::string unknown = message_of<ToolchainError>([&] { compile(sample_kernel("sm_999")); });
  CHECK(contains(unknown, "does not compile for sm_999, only for sm_"));
  const std::string malformed =
      message_of<ToolchainError>([&] { compile(sample_kernel("compute_90")); });
  CHECK(contains(malformed, "target \"compute_90\" is not of the form sm_<number>"));
}

TEST_CASE(
    "toolchain by build-id: the toolchain identity holds version, both build-ids and appended "
    "flags") {
  const std::string identity = nvrtc().toolchain_identity();
  CHECK(identity.starts_with("nvrtc " + nvrtc().version() + " library "));
  CHECK(contains(identity, " builtins "));
  const ScopedVariable appended("NVRTC_APPEND_FLAGS", "-DFLAG");
  const std::string other = NvrtcCompiler().toolchain_identity();
  CHECK(contains(other, "appended_flags [-DFLAG]"));
  CHECK(other != identity);
}

TEST_CASE(
    "good errors: a libnvrtc without its builtins beside it is refused with the missing name") {
  const ScratchDirectory scratch;
  const fs::path copy = scratch.path() / nvrtc().library_path().filename();
  fs::create_directory(scratch.path() / "alone");
  fs::copy_file(fs::canonical(nvrtc().library_path()), copy);
  const ScopedVariable named("ATTNJIT_NVRTC", copy.string());
  const std::string message = message_of<ToolchainError>([] { NvrtcCompiler(); });
  CHECK(contains(message, "$ATTNJIT_NVRTC " + copy.string() + ": libnvrtc-builtins.so." +
                              nvrtc().version() + " is missing beside it"));
  CHECK(contains(message, "Install NVRTC 12.4 or newer"));
}

TEST_CASE("good errors: a file that is no library is refused with the loader's words") {
  const ScratchDirectory scratch;
  write_text(scratch.path() / "libnvrtc.so.13", "not a library");
  const std::string message = message_of<ToolchainError>([&] { NvrtcCompiler(scratch.path()); });
  CHECK(contains(message, "the option nvrtc, " + (scratch.path() / "libnvrtc.so.13").string()));
  CHECK(contains(message, "file too short"));
}

TEST_CASE("a kernel compiled by NVRTC is served from the cache in the next process") {
  const ScratchDirectory scratch;
  KernelProviderOptions options;
  options.cache_directory = scratch.path();
  CHECK(run_in_child(
            [&] { return KernelProvider(options).provide(sample_kernel()).miss ? 0 : 1; }) == 0);
  CHECK(!KernelProvider(options).provide(sample_kernel()).miss);
}
