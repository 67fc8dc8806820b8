// Every kernel that the presets of tools/models need for decode, over all of them once: it compiles
// for each architecture and keeps everything in registers.
#include <sys/types.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/append_kv_cache.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/merge_states.hpp"
#include "attnjit/model_plan.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace {

using namespace attnjit;
using attnjit::test::read_text;
using Problems = std::vector<std::string>;

constexpr const char* architectures[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};
const std::filesystem::path model_folder = ATTNJIT_SOURCE_DIR "/tools/models";
constexpr std::size_t num_processes = 2;  // NVRTC compiles one kernel at a time per process

struct PlannedDecode {
  std::string name;  // "deepseek-v3 tp 8"
  AttentionDescriptor descriptor;
};

// One preset's decode descriptors; none where `tensor_parallel` does not divide its heads.
std::vector<PlannedDecode> plan_preset(const std::filesystem::path& file, int tensor_parallel) {
  PlanOptions options;
  options.tensor_parallel = tensor_parallel;
  options.phases = {Phase::decode};
  std::vector<PlannedDecode> decodes;
  try {
    for (const PlannedDescriptor& planned : plan_model(read_text(file), options).planned) {
      decodes.push_back(
          {file.stem().string() + " tp " + std::to_string(tensor_parallel), planned.descriptor});
    }
  } catch (const ModelError&) {
    CHECK(tensor_parallel > 1);
  }
  return decodes;
}

std::vector<PlannedDecode> plan_all_presets() {
  std::vector<PlannedDecode> decodes;
  for (const auto& entry : std::filesystem::directory_iterator(model_folder)) {
    if (entry.path().extension() == ".json") {
      for (const int tensor_parallel : {1, 8}) {
        const auto more = plan_preset(entry.path(), tensor_parallel);
        decodes.insert(decodes.end(), more.begin(), more.end());
      }
    }
  }
  return decodes;
}

struct Kernels {
  std::map<std::string, RenderedKernel> distinct;  // by everything the compiler sees
  int num_served = 0;
  int num_refused = 0;
  Problems unnamed_refusals;  // that name no field of a descriptor
};

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

void add_kernels(const PlannedDecode& decode, const char* arch, const TemplateLibrary& library,
                 Kernels& kernels) {
  const TargetDevice device = find_target_device(arch).value();
  try {
    for (const KernelConfig& config : select_configs(decode.descriptor, device)) {
      RenderedKernel kernel = render(config, device, library);
      kernels.distinct.emplace(arch + kernel.config, std::move(kernel));
    }
    ++kernels.num_served;
  } catch (const DescriptorError& error) {
    ++kernels.num_refused;
    if (!names_fields(error)) {
      kernels.unnamed_refusals.push_back(decode.name + ": " + error.what());
    }
  }
}

Kernels kernels_of_all_presets() {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const std::vector<PlannedDecode> decodes = plan_all_presets();
  Kernels kernels;
  for (const char* arch : architectures) {
    for (const PlannedDecode& decode : decodes) {
      add_kernels(decode, arch, library, kernels);
    }
  }
  return kernels;
}

// "" if the kernel compiles, needs no local memory, and the assembler serialised nothing.
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
  test::write_text(report, problems + "done\n");
  return 0;
}

TEST_CASE("batch-invariant kernels compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const NvrtcCompiler compiler;
  Problems problems;
  for (const char* preset : {"deepseek-v3", "llama-3.1-8b", "gpt-oss-20b"}) {
    for (const int tensor_parallel : {1, 8}) {
      for (PlannedDecode& decode :
           plan_preset(model_folder / (std::string(preset) + ".json"), tensor_parallel)) {
        decode.descriptor.batch_invariant = true;
        Kernels kernels;
        for (const char* arch : architectures) {
          add_kernels(decode, arch, library, kernels);
        }
        for (const auto& [text, kernel] : kernels.distinct) {
          problems.push_back(find_problem(compiler, kernel));
        }
      }
    }
  }
  std::erase(problems, "");
  CHECK(problems == Problems{});
}

TEST_CASE("a preset's decode is served or refused by the names of fields") {
  const Kernels kernels = kernels_of_all_presets();
  std::printf(
      "presets' decodes: %d served, %d refused, %zu distinct kernels on %zu architectures\n",
      kernels.num_served, kernels.num_refused, kernels.distinct.size(), std::size(architectures));
  CHECK(kernels.unnamed_refusals == Problems{});
  CHECK(kernels.num_served > 0);
  CHECK(kernels.num_refused > 0);
}

void check_all_compile(const Kernels& kernels) {
  const test::ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (std::size_t share = 0; share < num_processes; ++share) {
    children.push_back(test::start_child(
        [&] { return compile_share(kernels, share, scratch.path() / std::to_string(share)); }));
  }
  for (std::size_t share = 0; share < num_processes; ++share) {
    CHECK(test::wait_for_child(children[share]) == 0);
    CHECK(read_text(scratch.path() / std::to_string(share)) == "done\n");
  }
  std::printf("compiled %zu kernels\n", kernels.distinct.size());
}

TEST_CASE("the kernels of all presets compile for every architecture without local memory") {
  const Kernels kernels = kernels_of_all_presets();
  CHECK(kernels.distinct.size() >= 4 * 3);
  check_all_compile(kernels);
}

// What `decode` becomes with pages of this size; its combine and schedule kernels stay the same.
PlannedDecode with_pages(PlannedDecode decode, int page_size) {
  decode.name += " page " + std::to_string(page_size);
  decode.descriptor.page_size = page_size;
  return decode;
}

TEST_CASE("kernels that gather rows compile for Hopper without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const PlannedDecode& decode : plan_all_presets()) {
    if (decode.descriptor.value_source == ValueSource::prefix_of_k) {
      add_kernels(with_pages(decode, 1), "sm_90a", library, kernels);
    }
  }
  for (const int heads : {16, 128}) {
    for (const int page_size : {2, 3, 4, 5, 7, 12, 48, 100}) {
      add_kernels(with_pages({"latent", test::latent_decode(heads)}, page_size), "sm_90a", library,
                  kernels);
    }
  }
  for (const auto& [qk, v] : {std::pair(320, 256), std::pair(448, 384), std::pair(576, 512)}) {
    for (const int rows : {8, 16, 40}) {
      PlannedDecode latent = {"latent", test::latent_decode(rows / 2)};
      latent.descriptor.max_seqlen_q = 2;
      latent.descriptor.head_dim_qk = qk;
      latent.descriptor.head_dim_v = v;
      add_kernels(with_pages(latent, 4), "sm_90a", library, kernels);
    }
  }
  CHECK(kernels.distinct.size() >= 2 * 8 + 3);
  check_all_compile(kernels);
}

TEST_CASE("merges of states compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
    for (const int head_dim : {8, 64, 80, 128, 512, 576}) {
      for (const char* arch : architectures) {
        add_kernels({"merge", merge_states_descriptor(head_dim, dtype)}, arch, library, kernels);
      }
    }
  }
  CHECK(kernels.distinct.size() == 2 * 6 * std::size(architectures));
  check_all_compile(kernels);
}

// Of all element types, for caches of one row per token and of two.
TEST_CASE("cache writes compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  AttentionDescriptor tiny;
  tiny.head_dim_qk = tiny.head_dim_v = 8;
  tiny.num_kv_heads = tiny.page_size = 1;
  AttentionDescriptor wide;
  wide.head_dim_qk = 192;
  wide.page_size = 100;
  Kernels kernels;
  for (AttentionDescriptor cache : {AttentionDescriptor{}, tiny, wide, test::latent_decode(16)}) {
    for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
      for (const DataType dtype_kv : {dtype, DataType::fp8_e4m3, DataType::fp8_e5m2}) {
        cache.dtype_q = dtype;
        cache.dtype_kv = dtype_kv;
        for (const char* arch : architectures) {
          add_kernels({"append", append_kv_cache_descriptor(cache)}, arch, library, kernels);
        }
      }
    }
  }
  CHECK(kernels.distinct.size() == 4 * 2 * 3 * std::size(architectures));
  check_all_compile(kernels);
}

// Each takes registers of its own; which are short where, only all of them together show.
TEST_CASE("windows, sinks and batch-invariant cuts compile together without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const int heads : {16, 128}) {
    for (const int page_size : {1, 64}) {
      PlannedDecode decode = with_pages({"latent", test::latent_decode(heads)}, page_size);
      AttentionDescriptor& descriptor = decode.descriptor;
      descriptor.mask = MaskKind::sliding_window;
      descriptor.window_left = 511;
      descriptor.window_right = 0;
      for (const auto& [has_sinks, batch_invariant] :
           {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
        descriptor.has_sinks = has_sinks;
        descriptor.batch_invariant = batch_invariant;
        add_kernels(decode, "sm_90a", library, kernels);
      }
    }
  }
  CHECK(kernels.distinct.size() >= 4 * 3);
  check_all_compile(kernels);
}

}  // namespace
