// What a call of the C interface (attnjit.h) answers: exceptions become a status and a message of
// the calling thread. Thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "attnjit/attnjit.h"

namespace attnjit::c_abi {

// The interface itself is misused: ATTNJIT_INVALID_ARGUMENT.
class InvalidArgument : public std::invalid_argument {
 public:
  // "call = NULL: must be …; fix: …"
  InvalidArgument(std::string_view name, std::string_view value, std::string_view rule,
                  std::string_view fix);
};

// This thread's message and violations are those of no error.
void forget_last_error() noexcept;

// Kernels that were warmed are not in the cache: ATTNJIT_NOT_STORED.
class NotStored : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The status of the exception that is being handled, which becomes this thread's last error.
attnjit_status record_current_exception() noexcept;

// While it lives, a callback runs, in a call of this thread that may hold what another call would
// wait for.
class CallbackScope {
 public:
  CallbackScope() noexcept;
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  bool outer_;  // a release within an allocation that fails
};

// Throws InvalidArgument in a callback.
void refuse_in_callback();

// Handles that callbacks of this thread have ended.
bool has_postponed() noexcept;
void end_postponed() noexcept;

// Calls `action`; what it throws becomes the status. In a callback, a status as well.
template <typename Action>
attnjit_status guarded(Action&& action) noexcept {
  forget_last_error();
  attnjit_status status = ATTNJIT_OK;
  try {
    refuse_in_callback();
    action();
  } catch (...) {
    status = record_current_exception();
  }
  if (has_postponed()) {
    end_postponed();
  }
  return status;
}

// As `guarded`, for an `action` that ends a handle. In a callback it is done when the call that
// called back is about to return: a garbage collector does not choose where it runs.
attnjit_status guarded_end(std::function<void()> action) noexcept;

// `pointer` is not null.
void require(const void* pointer, std::string_view name);

[[noreturn]] void fail_on_size(std::string_view name, std::size_t given, std::size_t known);

// The caller's struct as this library knows it: itself, or in `storage` the shorter one of an older
// header followed by zeros. Throws InvalidArgument for null and for a size that is none of those.
template <typename Struct>
const Struct& read_struct(std::string_view name, const Struct* given, Struct& storage) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  require(given, name);
  if (given->struct_size == sizeof(Struct)) {
    return *given;
  }
  // An older header ends at a word: less would be a part of a pointer.
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > sizeof(Struct) ||
      given->struct_size % alignof(std::size_t) != 0) {
    fail_on_size(name, given->struct_size, sizeof(Struct));
  }
  std::memset(&storage, 0, sizeof(Struct));
  std::memcpy(&storage, given, given->struct_size);
  return storage;
}

}  // namespace attnjit::c_abi
