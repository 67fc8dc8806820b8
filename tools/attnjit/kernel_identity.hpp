// What makes a kernel that kernel, read out of the text of its key, and in what two differ: for
// "why is it not in the cache" and "what is the difference". Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/rendered_kernel.hpp"

namespace attnjit {

struct KernelIdentity {
  RenderedKernel kernel;  // with its config; threads and shared memory follow from that
  std::string toolchain;
  std::vector<std::string> options;
};

// `config` is what the entry or the renderer says; nullopt if `key_text` is no kernel's.
std::optional<KernelIdentity> identify_kernel(std::string_view key_text, const std::string& config);

// One thing that two kernels differ in.
struct Difference {
  std::string what;  // "toolchain", "target", "option", "config block_n", "source", "header …"
  std::string left;  // empty: not there; of sources and headers both are
  std::string right;
};

// In the order of their weight: toolchain, target, options, config, sources. Sources that follow
// from the config or the target are left out where these differ.
std::vector<Difference> find_differences(const KernelIdentity& left, const KernelIdentity& right);

// "config block_n: 64, there 32"; "header device/mma_sm80.cuh differs".
std::string describe(const Difference& difference);

}  // namespace attnjit
