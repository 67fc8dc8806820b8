// attnjit_tensor -> TensorView, one at a time, collecting everything that is wrong. Used by one
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/argument_error.hpp"
#include "attnjit/merge_states.hpp"
#include "attnjit/tensor_view.hpp"
#include "c_abi_objects.hpp"

namespace attnjit::c_abi {

class TensorReader {
 public:
  explicit TensorReader(PointerTrust trust) : trust_(trust) {}

  // A tensor of which `name` is the field. One without data is not given, unless it has no element.
  TensorView read(std::string_view name, const attnjit_tensor& tensor);

  // The i-th of a list of parts.
  PartialAttention read(std::size_t i, const attnjit_partial_attention& partial);

  // Memory of the caller that is no tensor. Null passes.
  void check_memory(std::string_view name, const void* data);

  // A word of a struct that must be 0.
  void check_reserved(std::int32_t value);

  // Throws ArgumentError if anything was wrong.
  void finish();

 private:
  bool has_form(std::string_view name, const attnjit_tensor& tensor);

  PointerTrust trust_;
  std::vector<Violation> violations_;
};

}  // namespace attnjit::c_abi
