// A kernel that was named -> its text at one stage of the straight line. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "kernel_source.hpp"

namespace attnjit {

enum class KernelStage {
  rendered,  // the translation unit alone
  flat,      // with all headers
  config,    // the constants that make this kernel
  ptx,       // made now by NVRTC
  sass,      // of the cubin that runs
};
std::string_view to_string(KernelStage);
const std::vector<KernelStage>& kernel_stages();

// The text of `source` at `stage`. ptx needs NVRTC, sass a disassembler and, for what the cache
// does not hold, NVRTC; a kernel that is compiled for it is kept, and told on standard error.
// Throws ToolchainError, CompileError, std::runtime_error.
std::string stage_text(const KernelSource& source, KernelStage stage,
                       const KernelProviderOptions& options);

// The PTX that NVRTC makes of `source` now, without the comment that stage_text begins it with.
std::string ptx_of(const KernelSource& source, const KernelProviderOptions& options);

// What is stored under the kernel's key; else, in the cache or compiled now and told on standard
// error, what serves it.
struct KernelBinary {
  std::string key;  // digest
  std::string cubin;
  KernelMetadata metadata;
};
KernelBinary binary_of(const KernelSource& source, KernelProvider& provider);

// A provider that tells on standard error what it compiles.
KernelProviderOptions telling_options(KernelProviderOptions options);

}  // namespace attnjit
