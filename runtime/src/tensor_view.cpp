#include "attnjit/tensor_view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit {
namespace {

// Views come from callers: a rank that no tensor has must not index past the arrays.
std::size_t bounded_rank(const TensorView& view) {
  return static_cast<std::size_t>(std::clamp(view.rank, 0, TensorView::max_rank));
}

}  // namespace

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

std::span<const std::int64_t> shape_of(const TensorView& view) {
  return std::span(view.shape).first(bounded_rank(view));
}

std::string describe(const TensorView& view) {
  const std::string rank = view.rank < 0 || view.rank > TensorView::max_rank
                               ? fmt::format("rank {}, ", view.rank)
                               : std::string();
  return fmt::format("{}{} [{}], strides [{}]", rank, to_string(view.dtype),
                     fmt::join(shape_of(view), ", "),
                     fmt::join(std::span(view.strides).first(bounded_rank(view)), ", "));
}

}  // namespace attnjit
