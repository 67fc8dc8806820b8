// A cache that is written without a compiler: the kernels of one descriptor, their cubins no
// cubins.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/kernel_renderer.hpp"

namespace attnjit::test {

// The kernels of the default decode on an H200, with the records of `toolchain`; each uses 168
// registers and spills `spill_bytes`.
inline std::vector<CacheKey> fill_cache(const std::filesystem::path& directory,
                                        const std::string& toolchain = "nvrtc 13.0 of a test",
                                        int spill_bytes = 0, const std::string& target = "h200") {
  DiskCache cache(directory, nullptr);
  const TargetDevice device = find_target_device(target).value();
  std::vector<CacheKey> keys;
  for (const KernelConfig& config : select_configs(AttentionDescriptor{}, device)) {
    const RenderedKernel kernel = render(config, device, TemplateLibrary::embedded());
    CompiledKernel compiled;
    compiled.resources.registers = 168;
    compiled.resources.spill_store_bytes = spill_bytes;
    keys.push_back(make_cache_key(kernel, compile_options(kernel, toolchain), toolchain));
    cache.put(keys.back(), to_json(describe(kernel, compiled, toolchain)), "cubin");
    cache.put(make_toolchain_record_key(kernel), R"({"record": "toolchain"})", toolchain);
  }
  return keys;
}

}  // namespace attnjit::test
