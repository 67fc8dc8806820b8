#include "compiled_kernels.hpp"

#include <sys/types.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "../cache/scratch_directory.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"

namespace attnjit::test {
namespace {

constexpr std::size_t num_processes = 2;  // NVRTC compiles one kernel at a time per process

bool names_fields(const DescriptorError& error) {
  const auto is_field = [](const Violation& violation) {
    bool found = false;
    const AttentionDescriptor any;
    for_each_field(
        any, [&](std::string_view name, const auto&) { found = found || name == violation.field; });
    return found && !violation.rule.empty() && !violation.fix.empty();
  };
  return !error.violations().empty() &&
         std::all_of(error.violations().begin(), error.violations().end(), is_field);
}

// Compiles every num_processes-th kernel from `first` on and writes the problems to `report`.
int compile_share(const Kernels& kernels, std::size_t first, const std::filesystem::path& report) {
  const NvrtcCompiler compiler;
  std::string problems;
  std::size_t index = 0;
  for (const auto& [text, kernel] : kernels.distinct) {
    if (index++ % num_processes == first) {
      problems += find_problem(compiler, kernel);
    }
  }
  write_text(report, problems + "done\n");
  return 0;
}

}  // namespace

void add_kernels(const NamedDescriptor& call, const char* arch, const TemplateLibrary& library,
                 Kernels& kernels) {
  const TargetDevice device = find_target_device(arch).value();
  try {
    for (const KernelConfig& config : select_configs(call.descriptor, device)) {
      RenderedKernel kernel = render(config, device, library);
      kernels.distinct.emplace(arch + kernel.config, std::move(kernel));
    }
    ++kernels.num_served;
  } catch (const DescriptorError& error) {
    ++kernels.num_refused;
    if (!names_fields(error)) {
      kernels.unnamed_refusals.push_back(call.name + ": " + error.what());
    }
  }
}

std::size_t count_of(const Kernels& kernels, std::string_view name) {
  std::size_t count = 0;
  for (const auto& [source, kernel] : kernels.distinct) {
    count += kernel.name == name ? 1 : 0;
  }
  return count;
}

std::string find_problem(const NvrtcCompiler& compiler, const RenderedKernel& kernel) {
  const std::string subject = kernel.arch + " " + kernel.config;
  try {
    const CompiledKernel compiled = compiler.compile(
        kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
    const KernelResources& used = compiled.resources;
    const int local = used.stack_frame_bytes + used.spill_store_bytes + used.spill_load_bytes;
    if (!compiled.notes.empty()) {
      return subject + ": " + compiled.notes.front() + "\n";
    }
    return local == 0 ? "" : subject + ": " + std::to_string(local) + " bytes of local memory\n";
  } catch (const CompileError& error) {
    return subject + ": " + error.what() + "\n";
  }
}

void check_all_compile(const Kernels& kernels) {
  const ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (std::size_t share = 0; share < num_processes; ++share) {
    children.push_back(start_child(
        [&] { return compile_share(kernels, share, scratch.path() / std::to_string(share)); }));
  }
  for (std::size_t share = 0; share < num_processes; ++share) {
    CHECK(wait_for_child(children[share]) == 0);
    CHECK(read_text(scratch.path() / std::to_string(share)) == "done\n");
  }
  std::printf("compiled %zu kernels\n", kernels.distinct.size());
}

}  // namespace attnjit::test
