#include "host_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnjit {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  std::uint16_t largest;  // bits of the largest finite value
};

Format format_of(DataType dtype) {
  switch (dtype) {
    case DataType::fp16:
      return {5, 10, 0x7bff};
    case DataType::fp8_e4m3:
      return {4, 3, 0x7e};
    default:
      return {8, 7, 0x7f7f};
  }
}

double decode_magnitude(const Format& format, int bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = bits >> format.mantissa_bits;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  return exponent == 0 ? std::ldexp(mantissa, 1 - bias - format.mantissa_bits)
                       : std::ldexp(mantissa + (1 << format.mantissa_bits),
                                    exponent - bias - format.mantissa_bits);
}

// SplitMix64: the same everywhere, and independent for neighbouring seeds.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // In (0, 1].
  double next_uniform() { return std::ldexp(static_cast<double>((next() >> 11) + 1), -53); }

 private:
  std::uint64_t state_;
};

}  // namespace

double decode_element(DataType dtype, std::uint16_t bits) {
  const Format format = format_of(dtype);
  const int sign_bit = 1 << (format.exponent_bits + format.mantissa_bits);
  const double magnitude = decode_magnitude(format, bits & (sign_bit - 1));
  return (bits & sign_bit) != 0 ? -magnitude : magnitude;
}

std::uint16_t encode_element(DataType dtype, double value) {
  const Format format = format_of(dtype);
  const double magnitude = std::abs(value);
  // Magnitudes grow with their bits: find the last that is not above.
  int low = 0;
  int above = format.largest + 1;
  while (above - low > 1) {
    const int middle = (low + above) / 2;
    (decode_magnitude(format, middle) <= magnitude ? low : above) = middle;
  }
  if (low < format.largest) {
    const double below_by = magnitude - decode_magnitude(format, low);
    const double above_by = decode_magnitude(format, low + 1) - magnitude;
    if (above_by < below_by || (above_by == below_by && low % 2 == 1)) {
      ++low;
    }
  }
  const int sign = std::signbit(value) ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
  return static_cast<std::uint16_t>(low | sign);
}

HostMatrix random_integers(int rows, int columns, int limit, std::uint64_t seed) {
  HostMatrix matrix(rows, columns);
  Random random(seed);
  for (double& value : matrix.values) {
    value = static_cast<double>(random.next() % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
  }
  return matrix;
}

HostMatrix random_normal(int rows, int columns, DataType dtype, std::uint64_t seed) {
  HostMatrix matrix(rows, columns);
  Random random(seed);
  for (double& value : matrix.values) {
    const double radius = std::sqrt(-2 * std::log(random.next_uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * random.next_uniform());
    value = decode_element(dtype, encode_element(dtype, normal));
  }
  return matrix;
}

std::vector<std::uint8_t> to_bytes(const HostMatrix& matrix, DataType dtype) {
  std::vector<std::uint8_t> bytes;
  for (const double value : matrix.values) {
    const std::uint16_t bits = encode_element(dtype, value);
    bytes.push_back(static_cast<std::uint8_t>(bits & 0xff));
    if (size_bytes(dtype) == 2) {
      bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
    }
  }
  return bytes;
}

}  // namespace attnjit
