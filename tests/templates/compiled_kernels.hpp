// Sets of rendered kernels, and that all of them compile without local memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "attnjit/template_library.hpp"

namespace attnjit::test {

using Problems = std::vector<std::string>;

constexpr const char* architectures[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};

struct NamedDescriptor {
  std::string name;  // "deepseek-v3 tp 8"
  AttentionDescriptor descriptor;
};

struct Kernels {
  std::map<std::string, RenderedKernel> distinct;  // by everything the compiler sees
  int num_served = 0;
  int num_refused = 0;
  Problems unnamed_refusals;  // that name no field of a descriptor
};

// Adds the kernels of `call` on `arch`, or counts it as refused.
void add_kernels(const NamedDescriptor& call, const char* arch, const TemplateLibrary& library,
                 Kernels& kernels);

// Those of one template.
std::size_t count_of(const Kernels& kernels, std::string_view name);

// "" if the kernel compiles, needs no local memory, and the assembler serialised nothing.
std::string find_problem(const NvrtcCompiler& compiler, const RenderedKernel& kernel);

// Compiles all of them, by several processes, and checks that none has a problem.
void check_all_compile(const Kernels& kernels);

}  // namespace attnjit::test
