// Small floating-point formats on the host, for tensors that checks make there. Pure; thread-safe.
#pragma once

#include <cstdint>

namespace attnjit::check {

// To the nearest, ties to even; `value` is finite.
float round_to_bf16(float value);
std::uint16_t bf16_bits(float value);

float e4m3_value(unsigned char code);

// A finite code near `value`.
unsigned char e4m3_code(double value);

}  // namespace attnjit::check
