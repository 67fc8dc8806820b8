// Unsigned integers as little-endian bytes, unaligned. Private; pure functions, thread-safe.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace attnjit {

template <std::unsigned_integral Integer>
void append_integer(std::string& bytes, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  }
}

// `bytes` reach beyond the integer.
template <std::unsigned_integral Integer>
Integer read_integer(std::string_view bytes, std::size_t offset) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    const Integer byte = static_cast<unsigned char>(bytes[offset + i]);
    value |= byte << (8 * i);
  }
  return value;
}

}  // namespace attnjit
