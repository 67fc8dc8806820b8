// templates/device/fp8_decode.cuh under the host compiler: every code, against the formats by their
// definition.
#include <bit>

#define __device__
#define __forceinline__ inline
struct float2 {
  float x;
  float y;
};
struct uint2 {
  unsigned x;
  unsigned y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned place = selector >> (4 * i) & 7u;
    const unsigned byte = (place < 4 ? low : high) >> (8 * (place % 4)) & 0xffu;
    result |= byte << (8 * i);
  }
  return result;
}
#include "device/fp8_decode.cuh"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "nearest_fp8.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <DataType type>
float defined_value(unsigned code) {
  const auto& format =
      type == DataType::fp8_e4m3 ? attnjit::test::fp8_e4m3 : attnjit::test::fp8_e5m2;
  const std::vector<double> values = attnjit::test::finite_fp8_values(format);
  const unsigned magnitude = code & 0x7fu;
  const float sign = code < 128 ? 1.0f : -1.0f;
  if (magnitude < values.size()) {
    return sign * static_cast<float>(values[magnitude]);
  }
  const bool is_infinity = type == DataType::fp8_e5m2 && magnitude == 0x7c;
  return is_infinity ? sign * infinity : std::numeric_limits<float>::quiet_NaN();
}

bool is_same(float a, float b) {
  return std::isnan(b) ? std::isnan(a) : std::bit_cast<unsigned>(a) == std::bit_cast<unsigned>(b);
}

template <DataType type>
int count_errors() {
  int errors = 0;
  for (unsigned low = 0; low < 256; ++low) {
    errors += !is_same(fp8_to_float<type>(low | 0xabcdef00u), defined_value<type>(low));
    for (unsigned high = 0; high < 256; ++high) {
      const unsigned pair = decode_fp8_pair<type, DataType::bf16>(low | high << 8 | 0x12340000u);
      errors += !is_same(__uint_as_float(pair << 16), defined_value<type>(low));
      errors += !is_same(__uint_as_float(pair & 0xffff0000u), defined_value<type>(high));
    }
  }
  return errors;
}

TEST_CASE("every fp8 code is decoded to its value, as fp32 and as a pair of bf16") {
  CHECK(count_errors<DataType::fp8_e4m3>() == 0);
  CHECK(count_errors<DataType::fp8_e5m2>() == 0);
}

TEST_CASE("four fp8 codes are decoded in their order") {
  const uint2 quad = decode_fp8_quad<DataType::fp8_e4m3, DataType::bf16>(0xc0b83840u);
  CHECK(quad.x == 0x3f804000u);  // 2, 1
  CHECK(quad.y == 0xc000bf80u);  // -1, -2
}

TEST_CASE("every e8m0 code is a power of two, the last one NaN") {
  int errors = 0;
  for (unsigned code = 0; code < 255; ++code) {
    errors += e8m0_to_float(code) != std::ldexp(1.0f, static_cast<int>(code) - 127);
  }
  CHECK(errors == 0);
  CHECK(std::isnan(e8m0_to_float(255)));
}

}  // namespace
