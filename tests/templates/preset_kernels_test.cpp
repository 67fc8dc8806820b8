// Every kernel that the presets of tools/models need for decode, over all of them once: it compiles
// for each architecture and keeps everything in registers.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/append_kv_cache.hpp"
#include "attnjit/merge_states.hpp"
#include "attnjit/model_plan.hpp"
#include "catch.hpp"
#include "compiled_kernels.hpp"
#include "latent_descriptor.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;

const std::filesystem::path model_folder = ATTNJIT_SOURCE_DIR "/tools/models";

// One preset's decode descriptors; none where `tensor_parallel` does not divide its heads.
std::vector<NamedDescriptor> plan_preset(const std::filesystem::path& file, int tensor_parallel) {
  PlanOptions options;
  options.tensor_parallel = tensor_parallel;
  options.phases = {Phase::decode};
  std::vector<NamedDescriptor> decodes;
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

std::vector<NamedDescriptor> plan_all_presets() {
  std::vector<NamedDescriptor> decodes;
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

Kernels kernels_of_all_presets() {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const std::vector<NamedDescriptor> decodes = plan_all_presets();
  Kernels kernels;
  for (const char* arch : architectures) {
    for (const NamedDescriptor& decode : decodes) {
      add_kernels(decode, arch, library, kernels);
    }
  }
  return kernels;
}

TEST_CASE("batch-invariant kernels compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const NvrtcCompiler compiler;
  Problems problems;
  for (const char* preset : {"deepseek-v3", "llama-3.1-8b", "gpt-oss-20b"}) {
    for (const int tensor_parallel : {1, 8}) {
      for (NamedDescriptor& decode :
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

TEST_CASE("the kernels of all presets compile for every architecture without local memory") {
  const Kernels kernels = kernels_of_all_presets();
  CHECK(kernels.distinct.size() >= 4 * 3);
  check_all_compile(kernels);
}

// What `decode` becomes with pages of this size; its combine and schedule kernels stay the same.
NamedDescriptor with_pages(NamedDescriptor decode, int page_size) {
  decode.name += " page " + std::to_string(page_size);
  decode.descriptor.page_size = page_size;
  return decode;
}

TEST_CASE("kernels that gather rows compile for Hopper without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const NamedDescriptor& decode : plan_all_presets()) {
    if (decode.descriptor.value_source == ValueSource::prefix_of_k) {
      add_kernels(with_pages(decode, 1), "sm_90a", library, kernels);
    }
  }
  for (const int heads : {16, 128}) {
    for (const int page_size : {2, 3, 4, 5, 7, 12, 48, 100}) {
      add_kernels(with_pages({"latent", latent_decode(heads)}, page_size), "sm_90a", library,
                  kernels);
    }
  }
  for (const auto& [qk, v] : {std::pair(320, 256), std::pair(448, 384), std::pair(576, 512)}) {
    for (const int rows : {8, 16, 40}) {
      NamedDescriptor latent = {"latent", latent_decode(rows / 2)};
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

// 64 rows of 512 columns leave a mask few registers; of more columns, fewer rows are taken.
TEST_CASE("decodes of wide heads compile under every mask without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const auto& [qk, v] :
       {std::pair(448, 448), std::pair(512, 512), std::pair(544, 512), std::pair(576, 576)}) {
    for (const MaskKind mask : {MaskKind::causal, MaskKind::sliding_window,
                                MaskKind::materialized_bool, MaskKind::materialized_additive}) {
      NamedDescriptor wide = {"wide", latent_decode(128)};
      AttentionDescriptor& descriptor = wide.descriptor;
      descriptor.head_dim_qk = qk;
      descriptor.head_dim_v = v;
      descriptor.mask = mask;
      if (mask == MaskKind::sliding_window) {
        descriptor.window_left = 1000;
        descriptor.window_right = 3;
      }
      if (mask == MaskKind::materialized_additive) {
        descriptor.dtype_mask = DataType::bf16;
      }
      for (const char* arch : architectures) {
        add_kernels(wide, arch, library, kernels);
      }
    }
  }
  CHECK(kernels.num_refused == 0);
  CHECK(count_of(kernels, "paged_decode_sm80") >= 4 * 4 * 3);
  check_all_compile(kernels);
}

// Each takes registers of its own; which are short where, only all of them together show.
TEST_CASE("windows, sinks and batch-invariant cuts compile together without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const int heads : {16, 128}) {
    for (const int page_size : {1, 64}) {
      NamedDescriptor decode = with_pages({"latent", latent_decode(heads)}, page_size);
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
