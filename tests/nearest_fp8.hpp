// fp8 by definition, in fp64: the finite values of a format, and the code of the nearest one. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace attnjit::test {

struct Fp8Definition {
  int mantissa_bits;
  int bias;
  int num_finite;  // codes without a sign, from 0
};
constexpr Fp8Definition fp8_e4m3 = {3, 7, 0x7f};
constexpr Fp8Definition fp8_e5m2 = {2, 15, 0x7c};

// The values of codes 0 and up.
inline std::vector<double> finite_fp8_values(const Fp8Definition& format) {
  const int mantissas = 1 << format.mantissa_bits;
  std::vector<double> values;
  for (int code = 0; code < format.num_finite; ++code) {
    const int exponent = code / mantissas;
    const int significand = code % mantissas + (exponent > 0 ? mantissas : 0);
    values.push_back(
        std::ldexp(significand, std::max(exponent, 1) - format.bias - format.mantissa_bits));
  }
  return values;
}

// Of the nearest of `values`, the even one of two that are as near; 0x7f for NaN.
inline unsigned nearest_fp8(const std::vector<double>& values, float value) {
  if (std::isnan(value)) {
    return 0x7f;
  }
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) {
    return sign | static_cast<unsigned>(values.size() - 1);
  }
  unsigned code = static_cast<unsigned>(above - values.begin());
  if (*above > magnitude) {
    const double up = *above - magnitude;
    const double down = magnitude - values[code - 1];
    code -= down < up || (down == up && code % 2 == 1) ? 1 : 0;
  }
  return sign | code;
}

inline float fp16_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  const float sign = bits >> 15 == 0 ? 1.0f : -1.0f;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  return sign * std::ldexp(static_cast<float>(mantissa + (exponent > 0 ? 1024 : 0)),
                           std::max(exponent, 1) - 25);
}

}  // namespace attnjit::test
