#include "element_bits.hpp"

#include <bit>
#include <cmath>

namespace attnjit::check {

float round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

std::uint16_t bf16_bits(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(round_to_bf16(value)) >> 16);
}

float e4m3_value(unsigned char code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return static_cast<float>(code >> 7 != 0 ? -magnitude : magnitude);
}

unsigned char e4m3_code(double value) {
  unsigned char nearest = 0;
  for (unsigned char code = 1; code < 0x7f; ++code) {
    if (std::abs(e4m3_value(code) - std::abs(value)) <
        std::abs(e4m3_value(nearest) - std::abs(value))) {
      nearest = code;
    }
  }
  return static_cast<unsigned char>(nearest | (value < 0 ? 0x80 : 0));
}

}  // namespace attnjit::check
