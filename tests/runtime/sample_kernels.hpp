// Small kernels and cubins made by hand, for the tests of runtime/. Pure, thread-safe.
#pragma once

#include "attnjit/rendered_kernel.hpp"

#include <string>
#include <string_view>

namespace attnjit::test {

// A kernel that includes device/scale.cuh, which includes device/constants.cuh, both with quotes.
RenderedKernel sample_kernel(const std::string& arch = "sm_90a");

// An ELF file that passes for a cubin of `architecture` in the format of CUDA 13, with code for the
// kernel `entry` and nothing else.
std::string sample_cubin(int architecture, std::string_view entry);

bool contains(std::string_view text, std::string_view part);

// What `action` throws as an Error, or "" if it throws nothing.
template <typename Error, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace attnjit::test
