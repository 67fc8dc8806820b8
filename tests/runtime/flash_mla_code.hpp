// The error code with which FlashMLA's interface refuses, and that the message says it and a fix.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "attnjit/flash_mla.hpp"
#include "catch.hpp"

namespace attnjit::test {

// None if `action` does not throw a FlashMlaError.
inline std::optional<FlashMlaErrorCode> code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const FlashMlaError& error) {
    const std::string message = error.what();
    CHECK(message.find(to_string(error.code())) == 0);
    CHECK(message.find("; fix: ") != std::string::npos);
    return error.code();
  }
  return std::nullopt;
}

}  // namespace attnjit::test
