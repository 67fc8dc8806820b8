// What KernelProvider::provide works on, and its steps one by one. Private to it; thread-safe.
#pragma once

#include "attnjit/kernel_provider.hpp"
#include "miss_trace.hpp"
#include "single_flight.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace attnjit {

struct CacheMiss {
  MissReason reason = MissReason::absent;
  std::string detail;
};

// What did not compile, by key: the same bytes would not the next time, and a server that asks
// again for each request must not compile again for each. In memory only: another process may have
// a repaired toolchain under the same identity.
class FailedCompiles {
 public:
  void remember(const std::string& digest, const std::string& message);

  // Throws the CompileError of the key, if it has one.
  void rethrow(const std::string& digest) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> messages_;
};

struct KernelProvider::State {
  TemplateLibrary templates;
  DiskCache cache;
  std::shared_ptr<const KernelCompiler> compiler;  // null: none found, or none allowed
  std::string compiler_problem;                    // why it is null
  JitPolicy jit;
  std::function<void(const MissEvent&)> on_miss;
  std::function<void(std::string_view)> on_wait;
  MissTrace trace;
  SingleFlight<ProvidedKernel> flights;
  FailedCompiles failed_compiles;

  // Identity of the compiler; without one, of the toolchain that the cache has on record for
  // `kernel`; "" if it has none, under which nothing is ever stored.
  std::string find_toolchain(const RenderedKernel& kernel) const;

  // A verified hit, or nullopt and the reason in `miss`.
  std::optional<ProvidedKernel> find_in_cache(const RenderedKernel& kernel, const CacheKey& key,
                                              CacheMiss& miss) const;

  // The same after a miss, which was counted, and whose reason stands.
  std::optional<ProvidedKernel> look_again_in_cache(const RenderedKernel& kernel,
                                                    const CacheKey& key) const;

  // The same, and nothing is counted or changed.
  std::optional<ProvidedKernel> peek_in_cache(const RenderedKernel& kernel, const CacheKey& key,
                                              CacheMiss& miss) const;

  // Keeps other processes from compiling the kernel, if this one may.
  KeyLock lock_for_compiling(const RenderedKernel& kernel, const CacheKey& key) const;

  // Records the miss and tells on_miss; throws if the kernel may not or cannot be compiled.
  void report_miss(const RenderedKernel& kernel, const CacheKey& key, const CacheMiss& miss);

  // Throws CompileError, remembered, which says where the source was saved. Needs a compiler, as
  // does the next one.
  CompiledKernel compile(const RenderedKernel& kernel, const CacheKey& key);

  ProvidedKernel compile_and_publish(const RenderedKernel& kernel, const CacheKey& key);

  // Writes a kernel's toolchain record again if what is in its place is damaged: without a compiler
  // the kernel would not be found.
  void repair_toolchain_record(const ProvidedKernel& provided);

  // Stores entry and toolchain record. What fails costs the next process a compile.
  bool publish(const ProvidedKernel& provided);
};

}  // namespace attnjit
