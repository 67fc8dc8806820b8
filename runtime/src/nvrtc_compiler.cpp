#include "attnjit/nvrtc_compiler.hpp"

#include "attnjit/kernel_key.hpp"
#include "cubin_inspection.hpp"
#include "error_excerpt.hpp"
#include "nvrtc_library.hpp"
#include "nvrtc_options.hpp"
#include "ptxas_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

namespace attnjit {
namespace {

// What the compiler calls the source: fixed, for it shows in errors and shapes symbol names.
std::string program_name(const RenderedKernel& kernel) {
  return kernel.entry + ".cu";
}

// One nvrtcProgram, destroyed on every path.
class Program {
 public:
  Program(const NvrtcLibrary& nvrtc, const RenderedKernel& kernel);
  ~Program() { nvrtc_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) const;
  std::string log() const;
  std::string cubin() const;
  std::string ptx() const;

 private:
  void check(nvrtcResult result, const char* call) const;

  const NvrtcLibrary& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

Program::Program(const NvrtcLibrary& nvrtc, const RenderedKernel& kernel) : nvrtc_(nvrtc) {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  for (const SourceFile& header : kernel.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  check(nvrtc_.create_program(&program_, kernel.source.c_str(), program_name(kernel).c_str(),
                              static_cast<int>(names.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
}

nvrtcResult Program::compile(const std::vector<std::string>& options) const {
  std::vector<const char*> pointers;
  pointers.reserve(options.size());
  for (const std::string& option : options) {
    pointers.push_back(option.c_str());
  }
  return nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
}

std::string Program::log() const {
  std::size_t bytes = 0;
  check(nvrtc_.get_program_log_size(program_, &bytes), "nvrtcGetProgramLogSize");
  std::string text(bytes, '\0');
  check(nvrtc_.get_program_log(program_, text.data()), "nvrtcGetProgramLog");
  return text.substr(0, text.find('\0'));
}

std::string Program::cubin() const {
  std::size_t bytes = 0;
  check(nvrtc_.get_cubin_size(program_, &bytes), "nvrtcGetCUBINSize");
  std::string cubin(bytes, '\0');
  check(nvrtc_.get_cubin(program_, cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

std::string Program::ptx() const {
  std::size_t bytes = 0;
  check(nvrtc_.get_ptx_size(program_, &bytes), "nvrtcGetPTXSize");
  std::string text(bytes, '\0');
  check(nvrtc_.get_ptx(program_, text.data()), "nvrtcGetPTX");
  return text.substr(0, text.find('\0'));
}

void Program::check(nvrtcResult result, const char* call) const {
  if (result != NVRTC_SUCCESS) {
    throw ToolchainError(fmt::format("{} failed: {} (NVRTC {}, {})", call,
                                     nvrtc_.get_error_string(result), to_string(nvrtc_.version),
                                     nvrtc_.library.path().string()));
  }
}

// The assembler's remarks push its errors out of the log: without an error in it, the kernel is
// compiled once more without them.
std::string log_of_failure(const NvrtcLibrary& nvrtc, const RenderedKernel& kernel,
                           std::vector<std::string> options, std::string log) {
  if (log.find("error") != std::string::npos) {
    return log;
  }
  std::erase(options, verbose_assembler);
  const Program again(nvrtc, kernel);
  again.compile(options);
  return log + again.log();
}

// Everything needed to understand a failed compile without running it again.
std::string failure_report(const NvrtcLibrary& nvrtc, const RenderedKernel& kernel,
                           const std::vector<std::string>& options, std::string_view problem,
                           const std::string& log) {
  return fmt::format(
      "kernel {} does not compile for {}: {}\n"
      "config: {}\n"
      "options: {}\n"
      "compiler: NVRTC {}, {}\n"
      "log:\n{}\n{}",
      kernel.name, kernel.arch, problem, kernel.config, fmt::join(options, " "),
      to_string(nvrtc.version), nvrtc.library.path().string(), log,
      error_excerpts(kernel, program_name(kernel), log));
}

void require_success(nvrtcResult result, const NvrtcLibrary& nvrtc, const RenderedKernel& kernel,
                     const std::vector<std::string>& options, const std::string& log) {
  if (result == NVRTC_ERROR_COMPILATION) {
    throw CompileError(failure_report(nvrtc, kernel, options, "the source has errors",
                                      log_of_failure(nvrtc, kernel, options, log)));
  }
  if (result != NVRTC_SUCCESS) {
    throw ToolchainError(
        failure_report(nvrtc, kernel, options, nvrtc.get_error_string(result), log));
  }
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(const std::filesystem::path& library)
    : library_(std::make_unique<const NvrtcLibrary>(open_nvrtc(library))) {}

NvrtcCompiler::~NvrtcCompiler() = default;

std::string NvrtcCompiler::toolchain_identity() const {
  return library_->identity;
}

std::vector<std::string> NvrtcCompiler::options(const RenderedKernel& kernel) const {
  return nvrtc_options(kernel.arch, library_->version);
}

std::string NvrtcCompiler::version() const {
  return to_string(library_->version);
}

std::filesystem::path NvrtcCompiler::library_path() const {
  return library_->library.path();
}

std::filesystem::path NvrtcCompiler::builtins_path() const {
  return library_->builtins_path;
}

std::vector<int> NvrtcCompiler::supported_architectures() const {
  return library_->architectures;
}

CompiledKernel NvrtcCompiler::compile(const RenderedKernel& kernel, const CacheKey& key) const {
  if (const auto problem = target_problem(kernel.arch, *library_)) {
    throw ToolchainError(*problem);
  }
  std::vector<std::string> all_options = options(kernel);
  if (auto seed = seed_option(key.digest, library_->version)) {
    all_options.push_back(std::move(*seed));
  }
  const auto start = std::chrono::steady_clock::now();
  const Program program(*library_, kernel);
  const nvrtcResult result = program.compile(all_options);
  const std::string log = program.log();
  require_success(result, *library_, kernel, all_options, log);
  std::string cubin = program.cubin();
  if (const auto problem = cubin_problem(cubin, kernel.arch, kernel.entry)) {
    throw CompileError(failure_report(*library_, kernel, all_options, *problem, log));
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  return {.cubin = std::move(cubin),
          .log = log,
          .resources = parse_resources(log, kernel.entry),
          .notes = serialization_notes(log),
          .milliseconds = elapsed.count()};
}

std::string NvrtcCompiler::compile_to_ptx(const RenderedKernel& kernel) const {
  if (const auto problem = target_problem(kernel.arch, *library_)) {
    throw ToolchainError(*problem);
  }
  const std::string target = "compute_" + kernel.arch.substr(std::string_view("sm_").size());
  std::vector<std::string> all_options = nvrtc_options(target, library_->version);
  // The seed of the cubin's compile: symbols are called the same.
  const CacheKey key = make_cache_key(kernel, options(kernel), toolchain_identity());
  if (auto seed = seed_option(key.digest, library_->version)) {
    all_options.push_back(std::move(*seed));
  }
  const Program program(*library_, kernel);
  const nvrtcResult result = program.compile(all_options);
  require_success(result, *library_, kernel, all_options, program.log());
  return program.ptx();
}

}  // namespace attnjit
