#include "kernel_provider_state.hpp"

#include "attnjit/failed_source.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "cubin_inspection.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

namespace attnjit {
namespace {

constexpr std::string_view record_metadata = R"({"record": "toolchain"})";

std::string missing_kernel_message(const RenderedKernel& kernel, const CacheKey& key,
                                   const CacheMiss& miss) {
  return fmt::format(
      "kernel {} for {} is not in the cache, and compiling is forbidden. Key {}, {}: {}. Config: "
      "{}. Fill the cache with `attnjit warm`, by the same version of attnjit, or allow compiling.",
      kernel.name, kernel.arch, key.digest, to_string(miss.reason), miss.detail, kernel.config);
}

std::string saved_source_note(const DiskCache& cache, const RenderedKernel& kernel,
                              const CacheKey& key) {
  if (!cache.directory() || !cache.trust_problem().empty()) {
    return "\nsource: not saved, for there is no cache directory\n";
  }
  const SavedSource saved = save_failed_source(*cache.directory(), key.digest, flatten(kernel));
  return saved.problem.empty() ? fmt::format("\nsource: {}\n", saved.path.string())
                               : fmt::format("\nsource: not saved: {}\n", saved.problem);
}

std::chrono::microseconds compile_time(const KernelMetadata& metadata) {
  return std::chrono::microseconds(std::llround(1000 * metadata.compile_milliseconds));
}

// The looked-up entry as a kernel; nullopt, and the reason in `miss`, if it is none for `kernel`.
std::optional<ProvidedKernel> accept(const RenderedKernel& kernel, const CacheKey& key,
                                     CacheLookup lookup, CacheMiss& miss) {
  if (!lookup.entry) {
    miss = {.reason = lookup.reason, .detail = std::move(lookup.detail)};
    return std::nullopt;
  }
  auto metadata = parse_kernel_metadata(lookup.entry->metadata);
  const auto problem = cubin_problem(lookup.entry->payload, kernel.arch, kernel.entry);
  if (problem || !metadata) {
    miss = {.reason = MissReason::corrupt,
            .detail = "the entry is whole, but " + problem.value_or("its metadata is not ours")};
    return std::nullopt;
  }
  return ProvidedKernel{.kernel = kernel,
                        .key = key,
                        .cubin = std::move(lookup.entry->payload),
                        .metadata = std::move(*metadata),
                        .miss = std::nullopt};
}

}  // namespace

void FailedCompiles::remember(const std::string& digest, const std::string& message) {
  const std::lock_guard lock(mutex_);
  messages_[digest] = message;
}

void FailedCompiles::rethrow(const std::string& digest) const {
  const std::lock_guard lock(mutex_);
  const auto found = messages_.find(digest);
  if (found != messages_.end()) {
    throw CompileError(found->second);
  }
}

std::string KernelProvider::State::find_toolchain(const RenderedKernel& kernel) const {
  if (compiler != nullptr) {
    return compiler->toolchain_identity();
  }
  const CacheLookup record = cache.find(make_toolchain_record_key(kernel));
  return record.entry ? record.entry->payload : "";
}

std::optional<ProvidedKernel> KernelProvider::State::find_in_cache(const RenderedKernel& kernel,
                                                                   const CacheKey& key,
                                                                   CacheMiss& miss) const {
  auto provided = accept(kernel, key, cache.get(key), miss);
  if (provided) {
    cache.count_saved_compile(compile_time(provided->metadata));
  }
  return provided;
}

std::optional<ProvidedKernel> KernelProvider::State::look_again_in_cache(
    const RenderedKernel& kernel, const CacheKey& key) const {
  CacheMiss ignored;
  return accept(kernel, key, cache.find(key), ignored);
}

std::optional<ProvidedKernel> KernelProvider::State::peek_in_cache(const RenderedKernel& kernel,
                                                                   const CacheKey& key,
                                                                   CacheMiss& miss) const {
  std::vector<LayerProbe> probes = cache.probe(key);
  for (LayerProbe& probe : probes) {
    if (probe.lookup.entry) {
      return accept(kernel, key, std::move(probe.lookup), miss);
    }
  }
  miss = {.reason = probes.front().lookup.reason, .detail = probes.front().lookup.detail};
  return std::nullopt;
}

KeyLock KernelProvider::State::lock_for_compiling(const RenderedKernel& kernel,
                                                  const CacheKey& key) const {
  if (compiler == nullptr) {
    return {LockRefusal::impossible, "nothing can be compiled"};
  }
  LockPatience patience;
  patience.on_wait = [&](std::string_view lock_file) {
    on_wait(fmt::format("waiting for another process that is compiling kernel {} for {} (lock {})",
                        kernel.name, kernel.arch, lock_file));
  };
  return cache.lock(key, patience);
}

void KernelProvider::State::report_miss(const RenderedKernel& kernel, const CacheKey& key,
                                        const CacheMiss& miss) {
  const MissEvent event = {
      .kernel = kernel, .key = key, .reason = miss.reason, .detail = miss.detail};
  if (trace.is_recording()) {
    trace.record(event, find_toolchain(kernel));
  }
  if (on_miss) {
    on_miss(event);
  }
  if (jit == JitPolicy::forbidden) {
    throw MissingKernelError(key.digest, miss.reason, missing_kernel_message(kernel, key, miss));
  }
  if (compiler == nullptr) {
    throw ToolchainError(
        fmt::format("kernel {} for {} is not in the cache ({}), and there is no "
                    "compiler: {}",
                    kernel.name, kernel.arch, miss.detail, compiler_problem));
  }
}

CompiledKernel KernelProvider::State::compile(const RenderedKernel& kernel, const CacheKey& key) {
  try {
    return compiler->compile(kernel, key);
  } catch (const CompileError& error) {
    const std::string message = error.what() + saved_source_note(cache, kernel, key);
    failed_compiles.remember(key.digest, message);
    throw CompileError(message);
  }
}

ProvidedKernel KernelProvider::State::compile_and_publish(const RenderedKernel& kernel,
                                                          const CacheKey& key) {
  CompiledKernel compiled = compile(kernel, key);
  KernelMetadata metadata = describe(kernel, compiled, compiler->toolchain_identity());
  ProvidedKernel provided{.kernel = kernel,
                          .key = key,
                          .cubin = std::move(compiled.cubin),
                          .metadata = std::move(metadata),
                          .miss = std::nullopt};
  provided.is_stored = publish(provided);
  return provided;
}

void KernelProvider::State::repair_toolchain_record(const ProvidedKernel& provided) {
  if (compiler == nullptr) {
    return;  // the record was just read, and whole
  }
  const CacheKey key = make_toolchain_record_key(provided.kernel);
  const CacheLookup record = cache.find(key);
  if (!record.entry && record.reason != MissReason::absent &&
      record.reason != MissReason::disabled) {
    cache.put(key, record_metadata, provided.metadata.toolchain);
  }
}

// The entry first: a record must not lead to an entry that is not there yet.
bool KernelProvider::State::publish(const ProvidedKernel& provided) {
  return cache.put(provided.key, to_json(provided.metadata), provided.cubin) &&
         cache.put(make_toolchain_record_key(provided.kernel), record_metadata,
                   provided.metadata.toolchain);
}

}  // namespace attnjit
