// The whole straight line up to the cubin: KernelConfig -> render -> make_cache_key -> DiskCache ->
// hit, or compile and put. Thread-safe; concurrent requests for one kernel compile it once, also
// those of several processes that share a cache, and requests for other kernels do not wait. Keeps
// no cubin: the caller loads it and holds the handle.
#pragma once

#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_compiler.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "attnjit/target_device.hpp"
#include "attnjit/template_library.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

enum class JitPolicy {
  allowed,
  // Nothing is compiled and NVRTC is never opened: a kernel comes from the cache, made by whichever
  // toolchain last compiled it there, or MissingKernelError is thrown.
  forbidden,
};

// A kernel had to be compiled (or, if that is forbidden, was refused).
struct MissEvent {
  const RenderedKernel& kernel;
  const CacheKey& key;
  MissReason reason;
  std::string_view detail;  // path and cause, for people
};

// JitPolicy::forbidden, and the cache does not hold the kernel. The message names kernel, key,
// reason and the command that would fill the cache.
class MissingKernelError : public std::runtime_error {
 public:
  MissingKernelError(std::string key_digest, MissReason reason, const std::string& message)
      : std::runtime_error(message), key_digest_(std::move(key_digest)), reason_(reason) {}

  const std::string& key_digest() const { return key_digest_; }
  MissReason reason() const { return reason_; }

 private:
  std::string key_digest_;
  MissReason reason_;
};

struct KernelProviderOptions {
  std::filesystem::path templates;        // see TemplateLibrary::open
  std::filesystem::path cache_directory;  // see resolve_cache_directory
  // These three: see CacheChoice.
  std::vector<std::filesystem::path> cache_layers = {};
  std::optional<CacheSharing> cache_sharing = std::nullopt;
  std::optional<std::uint64_t> cache_max_bytes = std::nullopt;
  std::filesystem::path nvrtc;  // see NvrtcCompiler
  JitPolicy jit = JitPolicy::allowed;
  std::function<void(const MissEvent&)> on_miss;  // called before the compile, from any thread
  DiskCache::WarningHandler warn;  // of cache and its variables; default: one line on stderr
  // Another process has been compiling the kernel for two seconds, and is waited for, ten minutes
  // at most. Called from any thread; default: one line on stderr.
  std::function<void(std::string_view message)> on_wait;
  // The file to which misses are appended, a line of JSON each, for `attnjit warm --from-trace`;
  // empty: none; unset: what $ATTNJIT_MISS_TRACE names. That it cannot be written is told once,
  // through `warn`.
  std::optional<std::filesystem::path> miss_trace = {};
};

struct ProvidedKernel {
  RenderedKernel kernel;
  CacheKey key;
  std::string cubin;
  KernelMetadata metadata;
  std::optional<MissReason> miss;  // set if provide had to compile it
  bool is_stored = true;           // false: compiled, and the cache could not take it
};

// What the cache says of a kernel.
struct KernelLookup {
  CacheKey key;                            // that provide would ask for
  std::optional<ProvidedKernel> provided;  // set on a hit
  MissReason reason = MissReason::absent;  // of a miss
  std::string detail;                      // of a miss: path and cause, for people
};

class KernelProvider {
 public:
  // Opens templates and cache and, if jit is allowed, NVRTC. A missing NVRTC is no error yet: what
  // the cache holds is served, as under JitPolicy::forbidden, and the first miss throws
  // ToolchainError. Throws TemplateError.
  explicit KernelProvider(const KernelProviderOptions& options);

  // The same with a compiler of the caller's; null is like a missing NVRTC.
  KernelProvider(KernelProviderOptions options, std::shared_ptr<const KernelCompiler> compiler);

  ~KernelProvider();

  // The kernel's cubin, from the cache or compiled now. Throws TemplateError, CompileError,
  // ToolchainError, MissingKernelError; never for what is wrong with the cache. What once did not
  // compile is not compiled again by this provider: its CompileError is thrown again. on_miss may
  // throw to cancel.
  ProvidedKernel provide(const KernelConfig& config, const TargetDevice& device);

  // The same from a kernel that is rendered already.
  ProvidedKernel provide(const RenderedKernel& kernel);

  // Compiles the kernel whatever the cache holds, and publishes it in place of that; `miss` stays
  // unset. Throws CompileError, or ToolchainError, also where jit is forbidden.
  ProvidedKernel recompile(const RenderedKernel& kernel);

  // What provide would find now: compiles nothing, writes nothing, waits for nobody.
  KernelLookup look_up(const RenderedKernel& kernel) const;

  // Why there is no compiler; empty if there is one.
  std::string compiler_problem() const;

  const DiskCache& cache() const;
  const TemplateLibrary& templates() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnjit
