// The fuzzer's bytes as decisions. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>

namespace attnjit::test {

class FuzzBytes {
 public:
  explicit FuzzBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool is_empty() const { return bytes_.empty(); }

  // 0 where no byte is left.
  std::uint8_t byte() {
    if (bytes_.empty()) {
      return 0;
    }
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }

  // Less than `count`, which is at most 256.
  std::size_t below(std::size_t count) { return byte() % count; }

  bool one_in(std::size_t count) { return below(count) == 1 % count; }

  template <typename Number>
  Number number() {
    Number value = {};
    std::uint8_t raw[sizeof value];
    for (std::uint8_t& part : raw) {
      part = byte();
    }
    std::memcpy(&value, raw, sizeof value);
    return value;
  }

  template <typename Value>
  Value pick(std::initializer_list<Value> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(below(values.size())));
  }

  std::string text(std::size_t most_characters) {
    std::string text(below(most_characters + 1), '\0');
    for (char& character : text) {
      character = static_cast<char>(byte());
    }
    return text;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace attnjit::test
