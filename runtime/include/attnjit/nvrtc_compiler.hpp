// The KernelCompiler on NVRTC, opened at run time: needs libnvrtc and its builtins (12.4 or newer),
// no toolkit, no headers, no driver, no GPU. Thread-safe; NVRTC's front end runs one compile at a
// time per process, so parallel warming wants processes.
#pragma once

#include "attnjit/kernel_compiler.hpp"

#include <filesystem>
#include <memory>

namespace attnjit {

struct NvrtcLibrary;

class NvrtcCompiler final : public KernelCompiler {
 public:
  // Opens `library` (the file or its directory) if not empty, else what $ATTNJIT_NVRTC names, else
  // the first usable one of: the loader's path, CUDA toolkits, Python packages. Throws
  // ToolchainError listing everything tried.
  explicit NvrtcCompiler(const std::filesystem::path& library = {});
  ~NvrtcCompiler() override;

  std::string toolchain_identity() const override;
  CompiledKernel compile(const RenderedKernel& kernel, const CacheKey& key) const override;

  // The PTX that the cubin of `kernel` comes from, for people to read: the options of every compile
  // but for the target, compute_XY instead of sm_XY. It never runs. Throws as compile does.
  std::string compile_to_ptx(const RenderedKernel& kernel) const;

  // The options of every compile of `kernel`, without those made from its key.
  std::vector<std::string> options(const RenderedKernel& kernel) const;

  std::string version() const;                       // e.g. "13.0"
  std::filesystem::path library_path() const;        // of libnvrtc
  std::filesystem::path builtins_path() const;       // of libnvrtc-builtins
  std::vector<int> supported_architectures() const;  // e.g. 75, 80, …, without suffixes

 private:
  std::unique_ptr<const NvrtcLibrary> library_;
};

}  // namespace attnjit
