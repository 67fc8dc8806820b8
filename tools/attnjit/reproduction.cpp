#include "reproduction.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/embedded_file.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "kernel_facts.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_reproductions;

namespace {

const EmbeddedFile* find_embedded(const std::string& name) {
  const auto found = std::find_if(embedded_reproductions.begin(), embedded_reproductions.end(),
                                  [&](const EmbeddedFile& file) { return file.name == name; });
  return found == embedded_reproductions.end() ? nullptr : &*found;
}

// The descriptor's, else the config's, else `otherwise`.
int number_of(const KernelSource& source, const char* field, int otherwise) {
  const nlohmann::ordered_json config = config_json(source.kernel.config);
  return config.is_object() ? config.value(field, otherwise) : otherwise;
}

bool is_decode(const std::string& kernel) {
  return kernel.find("decode") != std::string::npos || kernel == "combine_splits" ||
         kernel == "sparse_mla_sm80" || kernel == "append_kv_cache";
}

// `main` and the headers of a family of kernels that it includes, one after another.
std::string with_family(std::string main) {
  for (const char* header : {"repro_latent.h", "repro_decode.h"}) {
    if (main.find(fmt::format("\"{}\"", header)) != std::string::npos) {
      main += find_embedded(header)->text;
    }
  }
  return main;
}

// Throws UsageError for a size that the kernel's program does not read.
void refuse_unread(const std::string& main, std::string_view kernel,
                   const ReproductionCase& sizes) {
  const ReproductionCase none;
  const std::string text = with_family(main);
  const auto reads = [&](const char* word) { return text.find(word) != std::string::npos; };
  const auto refuse = [&](bool is_given, bool is_read, std::string_view option) {
    refuse_option(is_given && !is_read, option, kernel);
  };
  refuse(sizes.batch != none.batch, reads("repro_case::batch"), "--batch");
  refuse(sizes.seqlen_q != none.seqlen_q, reads("repro_case::seqlen_q"), "--seqlen-q");
  refuse(sizes.seqlen_kv != none.seqlen_kv, reads("repro_case::seqlen_kv"), "--seqlen-kv");
  refuse(sizes.seed != none.seed, reads("random_"), "--seed");
}

int seqlen_q_of(const KernelSource& source, const ReproductionCase& sizes) {
  if (sizes.seqlen_q > 0) {
    return sizes.seqlen_q;
  }
  if (!is_decode(source.kernel.name)) {
    return std::min(64, sizes.seqlen_kv);
  }
  return source.descriptor ? std::max(1, source.descriptor->max_seqlen_q) : 1;
}

std::string case_header(const KernelSource& source, const ReproductionCase& sizes) {
  const auto& descriptor = source.descriptor;
  const int num_kv_heads =
      descriptor ? descriptor->num_kv_heads : number_of(source, "num_kv_heads", 1);
  const int q_per_kv = descriptor ? descriptor->q_per_kv() : number_of(source, "q_per_kv", 1);
  const int head_dim = descriptor ? descriptor->head_dim_qk : number_of(source, "head_dim_qk", 128);
  const int topk = descriptor && descriptor->topk > 0 ? descriptor->topk : 64;
  return fmt::format(
      "// The sizes of the call. {}\n#pragma once\n\nnamespace repro_case {{\n"
      "constexpr int batch = {};      // requests, all alike\n"
      "constexpr int seqlen_q = {};   // query tokens of a request\n"
      "constexpr int seqlen_kv = {};  // keys of a request\n"
      "constexpr int num_kv_heads = {};\nconstexpr int q_per_kv = {};\n"
      "constexpr int topk = {};  // of token-sparse attention\n"
      "constexpr float softmax_scale = {:.9g}f;\n"
      "constexpr unsigned long long seed = {};\n"
      "constexpr int num_threads = {};          // of a block, as the kernel is launched\n"
      "constexpr int shared_memory_bytes = {};  // dynamic\n}}  // namespace repro_case\n",
      descriptor ? "Heads are the descriptor's."
                 : "A kernel alone does not say how many kv heads there are: change it to yours.",
      sizes.batch, seqlen_q_of(source, sizes), sizes.seqlen_kv, num_kv_heads, q_per_kv, topk,
      1.0 / std::sqrt(head_dim), sizes.seed, source.kernel.num_threads,
      source.kernel.shared_memory_bytes);
}

// compute_XY without a suffix where the target has none.
std::string build_script(const RenderedKernel& kernel) {
  return fmt::format(
      "#!/bin/sh\n# Builds ./repro, for {0}. NVCC names the compiler.\nset -eu\n"
      "cd \"$(dirname \"$0\")\"\n"
      "\"${{NVCC:-nvcc}}\" -std=c++17 -gencode arch=compute_{1},code=sm_{1} -I . -o repro "
      "main.cu\n",
      kernel.arch, kernel.arch.substr(std::string_view("sm_").size()));
}

}  // namespace

std::vector<SourceFile> make_reproduction(const KernelSource& source,
                                          const ReproductionCase& sizes) {
  const RenderedKernel& kernel = source.kernel;
  const EmbeddedFile* main = find_embedded(kernel.name + ".cu");
  if (main == nullptr) {
    throw UsageError(
        fmt::format("kernel = {}: there is no reproduction for it; fix: show it with "
                    "`attnjit src`",
                    kernel.name));
  }
  refuse_unread(std::string(main->text), "kernel " + kernel.name, sizes);
  std::vector<SourceFile> files = kernel.headers;
  files.push_back({"kernel.cu", kernel.source});
  files.push_back({"main.cu", std::string(main->text)});
  for (const EmbeddedFile& file : embedded_reproductions) {
    if (file.name.ends_with(".h")) {
      files.push_back({std::string(file.name), std::string(file.text)});
    }
  }
  files.push_back({"repro_case.h", case_header(source, sizes)});
  files.push_back({"build.sh", build_script(kernel)});
  return files;
}

}  // namespace attnjit
