#include "attnjit/tensor_view.hpp"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit {

TensorView contiguous_view(void* data, DataType dtype, std::initializer_list<std::int64_t> shape) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  for (const std::int64_t extent : shape) {
    view.shape.at(static_cast<std::size_t>(view.rank++)) = extent;
  }
  std::int64_t stride = 1;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    view.strides.at(i) = stride;
    stride *= view.shape.at(i);
  }
  return view;
}

TensorView permuted_view(const TensorView& view, std::initializer_list<int> order) {
  TensorView result = view;
  std::size_t to = 0;
  for (const int from : order) {
    result.shape.at(to) = view.shape.at(static_cast<std::size_t>(from));
    result.strides.at(to) = view.strides.at(static_cast<std::size_t>(from));
    ++to;
  }
  return result;
}

std::string describe(const TensorView& view) {
  const auto rank = static_cast<std::size_t>(view.rank);
  return fmt::format("{} [{}], strides [{}]", to_string(view.dtype),
                     fmt::join(std::span(view.shape).first(rank), ", "),
                     fmt::join(std::span(view.strides).first(rank), ", "));
}

}  // namespace attnjit
