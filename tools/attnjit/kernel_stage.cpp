#include "kernel_stage.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "attnjit/kernel_renderer.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "disassembler.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

std::filesystem::path library_of(const KernelProviderOptions& options) {
  try {
    return NvrtcCompiler(options.nvrtc).library_path();
  } catch (const ToolchainError&) {
    return {};  // a cached cubin needs none
  }
}

std::string ptx_text(const KernelSource& source, const KernelProviderOptions& options) {
  const NvrtcCompiler compiler(options.nvrtc);
  return fmt::format(
      "// What the cubin comes from, compiled now by NVRTC {} with the cubin's options but for "
      "the\n"
      "// target. It is not what runs: that is the cubin, see --stage sass.\n{}",
      compiler.version(), compiler.compile_to_ptx(source.kernel));
}

std::string sass_text(const KernelSource& source, const KernelProviderOptions& options) {
  const std::filesystem::path disassembler = find_disassembler(library_of(options));
  require_disassembler(disassembler);
  KernelProvider provider(telling_options(options));
  return disassemble(disassembler, binary_of(source, provider).cubin);
}

}  // namespace

std::string_view to_string(KernelStage stage) {
  switch (stage) {
    case KernelStage::rendered:
      return "rendered";
    case KernelStage::flat:
      return "flat";
    case KernelStage::config:
      return "config";
    case KernelStage::ptx:
      return "ptx";
    case KernelStage::sass:
      return "sass";
  }
  return "";
}

const std::vector<KernelStage>& kernel_stages() {
  static const std::vector<KernelStage> stages = {KernelStage::flat, KernelStage::rendered,
                                                  KernelStage::config, KernelStage::ptx,
                                                  KernelStage::sass};
  return stages;
}

std::string stage_text(const KernelSource& source, KernelStage stage,
                       const KernelProviderOptions& options) {
  switch (stage) {
    case KernelStage::rendered:
      return source.kernel.source;
    case KernelStage::flat:
      return flatten(source.kernel);
    case KernelStage::config:
      return config_header_of(source.kernel);
    case KernelStage::ptx:
      return ptx_text(source, options);
    case KernelStage::sass:
      return sass_text(source, options);
  }
  return "";
}

std::string ptx_of(const KernelSource& source, const KernelProviderOptions& options) {
  return NvrtcCompiler(options.nvrtc).compile_to_ptx(source.kernel);
}

KernelBinary binary_of(const KernelSource& source, KernelProvider& provider) {
  if (!source.key.empty()) {
    const StoredKernel stored = find_stored_kernel(provider.cache(), source.key);
    CacheLookup lookup = provider.cache().find({stored.key_text, stored.digest});
    if (!lookup.entry) {
      throw std::runtime_error(
          fmt::format("key = {}: its entry has gone meanwhile ({}); fix: run "
                      "the command again",
                      source.key, lookup.detail));
    }
    return {source.key, std::move(lookup.entry->payload), stored.metadata};
  }
  ProvidedKernel provided = provider.provide(source.kernel);
  return {std::move(provided.key.digest), std::move(provided.cubin), std::move(provided.metadata)};
}

KernelProviderOptions telling_options(KernelProviderOptions options) {
  options.on_miss = [](const MissEvent& miss) {
    print_message("attnjit: compiling {} for {}, which is not in the cache ({})\n",
                  miss.kernel.name, miss.kernel.arch, to_string(miss.reason));
  };
  return options;
}

}  // namespace attnjit
