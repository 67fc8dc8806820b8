// What a cache entry says about its cubin besides the key: one line of JSON, for `inspect`, tables
// and the launcher. Plain values; pure, thread-safe.
#pragma once

#include "attnjit/kernel_compiler.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

struct KernelMetadata {
  std::string name;    // template name
  std::string entry;   // entry point
  std::string arch;    // e.g. "sm_90a"
  std::string config;  // one line of JSON, as to_json(KernelConfig) wrote it
  std::string toolchain;
  int num_threads = 0;
  int shared_memory_bytes = 0;  // dynamic
  KernelResources resources;
  std::vector<std::string> notes;   // see CompiledKernel
  double compile_milliseconds = 0;  // of the compile that made the entry

  friend bool operator==(const KernelMetadata&, const KernelMetadata&) = default;
};

KernelMetadata describe(const RenderedKernel& kernel, const CompiledKernel& compiled,
                        std::string_view toolchain_identity);

std::string to_json(const KernelMetadata& metadata);

// nullopt for anything that to_json did not write, e.g. the metadata of a toolchain record.
std::optional<KernelMetadata> parse_kernel_metadata(std::string_view json);

}  // namespace attnjit
