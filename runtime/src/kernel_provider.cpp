#include "attnjit/kernel_provider.hpp"

#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "kernel_provider_state.hpp"

#include <utility>

namespace attnjit {

ProvidedKernel KernelProvider::provide(const KernelConfig& config, const TargetDevice& device) {
  return provide(render(config, device, state_->templates));
}

ProvidedKernel KernelProvider::provide(const RenderedKernel& kernel) {
  const std::string toolchain = state_->find_toolchain(kernel);
  const CacheKey key = make_cache_key(kernel, compile_options(kernel, toolchain), toolchain);
  CacheMiss miss;
  if (auto hit = state_->find_in_cache(kernel, key, miss)) {
    state_->repair_toolchain_record(*hit);
    return std::move(*hit);
  }
  return state_->flights.run(key.digest, [&]() -> ProvidedKernel {
    const KeyLock lock = state_->lock_for_compiling(kernel, key);
    // Another thread or process may have published it between the look above and here.
    if (auto hit = state_->look_again_in_cache(kernel, key)) {
      return std::move(*hit);
    }
    state_->failed_compiles.rethrow(key.digest);
    state_->report_miss(kernel, key, miss);
    ProvidedKernel provided = state_->compile_and_publish(kernel, key);
    provided.miss = miss.reason;
    return provided;
  });
}

ProvidedKernel KernelProvider::recompile(const RenderedKernel& kernel) {
  if (state_->compiler == nullptr) {
    throw ToolchainError(
        "kernel " + kernel.name + " for " + kernel.arch +
        " cannot be compiled again, for there is no compiler: " + state_->compiler_problem);
  }
  const std::string toolchain = state_->find_toolchain(kernel);
  return state_->compile_and_publish(
      kernel, make_cache_key(kernel, compile_options(kernel, toolchain), toolchain));
}

KernelLookup KernelProvider::look_up(const RenderedKernel& kernel) const {
  const std::string toolchain = state_->find_toolchain(kernel);
  KernelLookup lookup;
  lookup.key = make_cache_key(kernel, compile_options(kernel, toolchain), toolchain);
  CacheMiss miss;
  lookup.provided = state_->peek_in_cache(kernel, lookup.key, miss);
  lookup.reason = miss.reason;
  lookup.detail = std::move(miss.detail);
  return lookup;
}

}  // namespace attnjit
