// templates/device/fp8_numeric.cuh under the host compiler, without the instruction: against the
// formats by their definition, in fp64.
#include <bit>

#define __device__
#define __forceinline__ inline
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
#include "device/fp8_numeric.cuh"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "nearest_fp8.hpp"

namespace {

using attnjit::test::nearest_fp8;

template <DataType type>
std::vector<double> finite_values() {
  return finite_fp8_values(type == DataType::fp8_e4m3 ? attnjit::test::fp8_e4m3
                                                      : attnjit::test::fp8_e5m2);
}

// Every bf16 and fp16 value; what lies between two fp8 values or beside one; any fp32 bits.
template <DataType type>
std::vector<float> inputs() {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    values.push_back(std::bit_cast<float>(bits << 16));
    values.push_back(attnjit::test::fp16_value(bits));
  }
  const std::vector<double> finite = finite_values<type>();
  for (std::size_t i = 0; i < finite.size(); ++i) {
    const double next = i + 1 < finite.size() ? finite[i + 1] : 2 * finite[i] - finite[i - 1];
    for (const double point : {finite[i], (finite[i] + next) / 2}) {
      const auto exact = static_cast<float>(point);
      for (const float value : {exact, std::nextafter(exact, -1.0f), std::nextafter(exact, 1e9f)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 1000000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return values;
}

template <DataType type>
int count_errors() {
  const std::vector<double> values = finite_values<type>();
  int errors = 0;
  for (const float value : inputs<type>()) {
    const unsigned code = nearest_fp8(values, value);
    errors += to_fp8_portable<type>(value) != code;
    errors += pack_fp8_pair<type>(value, 1.0f) !=
              (code | (type == DataType::fp8_e4m3 ? 0x38u : 0x3cu) << 8);
  }
  return errors;
}

TEST_CASE("fp8 codes are those of the nearest value, even of two, never infinite") {
  CHECK(count_errors<DataType::fp8_e4m3>() == 0);
  CHECK(count_errors<DataType::fp8_e5m2>() == 0);
}

TEST_CASE("fp8 codes of known values") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_fp8_portable<DataType::fp8_e4m3>(448.0f) == 0x7e);
  CHECK(to_fp8_portable<DataType::fp8_e4m3>(-infinity) == 0xfe);
  CHECK(to_fp8_portable<DataType::fp8_e4m3>(0x1p-9f) == 0x01);
  CHECK(to_fp8_portable<DataType::fp8_e4m3>(0x1p-10f) == 0x00);
  CHECK(to_fp8_portable<DataType::fp8_e4m3>(-0.0f) == 0x80);
  CHECK(to_fp8_portable<DataType::fp8_e5m2>(infinity) == 0x7b);
  CHECK(to_fp8_portable<DataType::fp8_e5m2>(0x1.8p-16f) == 0x02);
  CHECK(to_fp8_portable<DataType::fp8_e5m2>(std::nanf("")) == 0x7f);
}

}  // namespace
