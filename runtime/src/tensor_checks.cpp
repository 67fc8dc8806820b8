#include "tensor_checks.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace attnjit {
namespace {

std::string shape_text(std::initializer_list<std::int64_t> shape) {
  std::string text;
  for (const std::int64_t extent : shape) {
    text += text.empty() ? "" : ", ";
    text += extent == TensorChecks::any ? std::string("any") : fmt::format("{}", extent);
  }
  return "[" + text + "]";
}

bool shape_matches(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return static_cast<std::size_t>(view.rank) == shape.size() &&
         std::equal(shape.begin(), shape.end(), view.shape.begin(),
                    [](std::int64_t wanted, std::int64_t given) {
                      return wanted == given || (wanted == TensorChecks::any && given >= 0);
                    });
}

}  // namespace

bool TensorChecks::require_shape(std::string_view name, const TensorView& view, DataType dtype,
                                 std::initializer_list<std::int64_t> shape) {
  const std::size_t before = violations_.size();
  if (view.data == nullptr) {
    add(name, "null", "must be given", "pass the tensor's device pointer");
    return false;
  }
  if (view.dtype != dtype) {
    add(name, describe(view), fmt::format("must be {}", to_string(dtype)), "cast the tensor");
  }
  if (!shape_matches(view, shape)) {
    add(name, describe(view), fmt::format("must have shape {}", shape_text(shape)),
        "reshape the tensor, or prepare a descriptor that fits it");
  }
  return violations_.size() == before;
}

void TensorChecks::require_strides(std::string_view name, const TensorView& view,
                                   std::int64_t multiple, std::uintptr_t alignment_bytes) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignment_bytes != 0) {
    add(name, fmt::format("{}", view.data), fmt::format("must be {}-byte aligned", alignment_bytes),
        "copy to aligned memory");
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    const bool is_last = i + 1 == static_cast<std::size_t>(view.rank);
    const std::int64_t stride = view.strides.at(i);
    if (view.shape.at(i) <= 1) {
      continue;
    }
    if (is_last ? stride != 1 : stride < 0 || stride % multiple != 0) {
      add(name, describe(view),
          is_last ? std::string("must have stride 1 in its last dimension")
                  : fmt::format("must have strides that are non-negative multiples of {} elements",
                                multiple),
          "make the tensor contiguous, or re-pack it");
      return;
    }
  }
}

void TensorChecks::require_least_stride(std::string_view name, const TensorView& view,
                                        std::int64_t least) {
  const auto alignment = static_cast<std::uintptr_t>(size_bytes(view.dtype));
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignment != 0) {
    add(name, fmt::format("{}", view.data), fmt::format("must be {}-byte aligned", alignment),
        "copy to aligned memory");
  }
  const std::span<const std::int64_t> shape = shape_of(view);
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (std::size_t i = 0; i < shape.size() && !is_empty; ++i) {
    if (shape[i] > 1 && view.strides.at(i) < least) {
      add(name, describe(view),
          fmt::format("must have strides of at least {} in dimensions longer than 1", least),
          "make the tensor contiguous, or re-pack it");
      return;
    }
  }
}

void TensorChecks::require_distinct(std::string_view name, const TensorView& view) {
  require_least_stride(name, view, 1);
}

void TensorChecks::require_readable(std::string_view name, const TensorView& view) {
  require_least_stride(name, view, 0);
}

void TensorChecks::require_some(std::string_view name, const TensorView& view,
                                std::size_t dimension) {
  if (view.shape.at(dimension) < 1) {
    add(name, describe(view), fmt::format("must not be empty in dimension {}", dimension),
        "pass the tensor that holds the keys, or leave out requests without any");
  }
}

void TensorChecks::add(std::string_view name, std::string value, std::string rule,
                       std::string fix) {
  violations_.push_back({std::string(name), std::move(value), std::move(rule), std::move(fix)});
}

void TensorChecks::finish() const {
  if (!violations_.empty()) {
    throw ArgumentError(violations_);
  }
}

}  // namespace attnjit
