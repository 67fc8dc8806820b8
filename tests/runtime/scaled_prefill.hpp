// Checks of prefill calls with scales of fp8 tensors, and where the kernel finds these.
#pragma once

#include <array>
#include <vector>

#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_arguments.hpp"
#include "prefill_calls.hpp"

namespace attnjit::test {

inline std::vector<Violation> violations_of(const PrefillCase& prefill) {
  return violations_of([&] { check_prefill_call(prefill.descriptor, prefill.call); });
}

inline void check_bad_prefills(const std::vector<BadCall<PrefillCall>>& bad_calls,
                               const PrefillCase& prefill) {
  REQUIRE(violations_of(prefill).empty());
  check_bad_calls(bad_calls, prefill.call,
                  [&](const PrefillCall& call) { check_prefill_call(prefill.descriptor, call); });
}

inline kernel_interface::PrefillArguments arguments_of(const PrefillCase& prefill) {
  REQUIRE(violations_of(prefill).empty());
  return make_prefill_arguments(prefill.descriptor, prefill.call);
}

using Shape = std::vector<std::int64_t>;

inline TensorView scales_of(const Shape& shape, std::uintptr_t place) {
  TensorView view = fp32_numbers({1}, place);
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    view.shape.at(i) = shape[i];
    view.strides.at(i) = stride;
    stride *= shape[i];
  }
  return view;
}

// batch, block, head and row of keys; batch, token and head of queries.
using Strides = std::array<long long, 4>;
using RowStrides = std::array<long long, 3>;

inline Strides strides_of(const kernel_interface::CacheStrides& strides) {
  return {strides.batch, strides.block, strides.head, strides.row};
}

inline RowStrides strides_of(const kernel_interface::QueryStrides& strides) {
  return {strides.batch, strides.token, strides.head};
}

}  // namespace attnjit::test
