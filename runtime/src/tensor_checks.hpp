// Collects what is wrong with the tensors of a call. Costs nothing while all is well: texts are
// made only for a violation. Used by one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/argument_error.hpp"
#include "attnjit/tensor_view.hpp"

namespace attnjit {

class TensorChecks {
 public:
  // Stands for "any extent" in a shape.
  static constexpr std::int64_t any = -1;

  // The tensor is given, of this type and shape. False if not, so that dependent checks can be left
  // out.
  bool require_shape(std::string_view name, const TensorView& view, DataType dtype,
                     std::initializer_list<std::int64_t> shape);

  // 16-byte aligned, stride 1 in the last dimension, other strides of dimensions longer than 1
  // non-negative multiples of `multiple` elements.
  void require_strides(std::string_view name, const TensorView& view, std::int64_t multiple,
                       std::uintptr_t alignment_bytes);

  // A tensor that is written: its strides of dimensions longer than 1 are positive, so that no two
  // elements of a row of any dimension share a place; aligned to its elements. Strides of a tensor
  // without elements are not looked at.
  void require_distinct(std::string_view name, const TensorView& view);

  // A tensor that is read element by element: strides not negative, aligned to its elements.
  void require_readable(std::string_view name, const TensorView& view);

  // A dimension whose extent is the caller's to choose, but not zero.
  void require_some(std::string_view name, const TensorView& view, std::size_t dimension);

  void add(std::string_view name, std::string value, std::string rule, std::string fix);

  // Throws ArgumentError if anything was added.
  void finish() const;

 private:
  void require_least_stride(std::string_view name, const TensorView& view, std::int64_t least);

  std::vector<Violation> violations_;
};

}  // namespace attnjit
