#include "c_abi_status.hpp"

#include <cuda.h>

#include <exception>
#include <functional>
#include <iterator>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/driver_error.hpp"

namespace attnjit::c_abi {
namespace {

struct LastError {
  std::string message;
  std::string violations;  // empty: none
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

struct Callbacks {
  bool is_running = false;
  std::vector<std::function<void()>> postponed;
};

Callbacks& callbacks() {
  thread_local Callbacks callbacks;
  return callbacks;
}

std::string violations_json(std::span<const Violation> violations) {
  auto list = nlohmann::ordered_json::array();
  for (const Violation& violation : violations) {
    list.push_back({{"field", violation.field},
                    {"value", violation.value},
                    {"rule", violation.rule},
                    {"fix", violation.fix}});
  }
  // What a caller gave may be no UTF-8, and must not hide what is wrong.
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

attnjit_status record(attnjit_status status, const char* message,
                      std::span<const Violation> violations = {}) {
  last_error().message = message;
  if (!violations.empty()) {
    last_error().violations = violations_json(violations);
  }
  return status;
}

attnjit_status record_known_exception() {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return record(ATTNJIT_INVALID_ARGUMENT, error.what());
  } catch (const DescriptorError& error) {
    return record(ATTNJIT_INVALID_DESCRIPTOR, error.what(), error.violations());
  } catch (const ArgumentError& error) {
    return record(ATTNJIT_INVALID_CALL, error.what(), error.violations());
  } catch (const ColdKernelError& error) {
    return record(ATTNJIT_COLD_KERNEL, error.what());
  } catch (const MissingKernelError& error) {
    return record(ATTNJIT_MISSING_KERNEL, error.what());
  } catch (const CompileError& error) {
    return record(ATTNJIT_COMPILE_FAILED, error.what());
  } catch (const ToolchainError& error) {
    return record(ATTNJIT_NO_TOOLCHAIN, error.what());
  } catch (const DriverError& error) {
    return record(ATTNJIT_NO_DRIVER, error.what());
  } catch (const CudaError& error) {
    const bool is_memory = error.code() == CUDA_ERROR_OUT_OF_MEMORY;
    return record(is_memory ? ATTNJIT_OUT_OF_MEMORY : ATTNJIT_CUDA_FAILED, error.what());
  } catch (const TemplateError& error) {
    return record(ATTNJIT_INVALID_TEMPLATES, error.what());
  } catch (const NotStored& error) {
    return record(ATTNJIT_NOT_STORED, error.what());
  } catch (const std::bad_alloc&) {
    return record(ATTNJIT_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const std::exception& error) {
    return record(ATTNJIT_INTERNAL_ERROR, error.what());
  } catch (...) {  // of a callback that is written in C++
    return record(ATTNJIT_INTERNAL_ERROR, "an exception that is no std::exception was thrown");
  }
}

}  // namespace

InvalidArgument::InvalidArgument(std::string_view name, std::string_view value,
                                 std::string_view rule, std::string_view fix)
    : std::invalid_argument(fmt::format("{} = {}: {}; fix: {}", name, value, rule, fix)) {}

CallbackScope::CallbackScope() noexcept : outer_(std::exchange(callbacks().is_running, true)) {}

CallbackScope::~CallbackScope() {
  callbacks().is_running = outer_;
}

void refuse_in_callback() {
  if (callbacks().is_running) {
    throw InvalidArgument("call", "from a callback", "must not come from a callback of attnjit",
                          "note what is to be done, and do it when the call has returned");
  }
}

bool has_postponed() noexcept {
  return !callbacks().postponed.empty();
}

void end_postponed() noexcept {
  // What is ended may call back, and these callbacks end further handles.
  while (!callbacks().is_running && has_postponed()) {
    const std::function<void()> action = std::move(callbacks().postponed.back());
    callbacks().postponed.pop_back();
    try {
      action();
    } catch (...) {  // no handle: who ended it was told that it is done
    }
  }
}

attnjit_status guarded_end(std::function<void()> action) noexcept {
  if (!callbacks().is_running) {
    return guarded(action);
  }
  try {
    callbacks().postponed.push_back(std::move(action));
    return ATTNJIT_OK;
  } catch (...) {
    return record_current_exception();
  }
}

void forget_last_error() noexcept {
  last_error().message.clear();
  last_error().violations.clear();
}

attnjit_status record_current_exception() noexcept {
  try {
    return record_known_exception();
  } catch (...) {  // no memory for the message
    return ATTNJIT_OUT_OF_MEMORY;
  }
}

void require(const void* pointer, std::string_view name) {
  if (pointer == nullptr) {
    throw InvalidArgument(name, "NULL", "must be given", "pass its address");
  }
}

void fail_on_size(std::string_view name, std::size_t given, std::size_t known) {
  throw InvalidArgument(
      fmt::format("{}->struct_size", name), fmt::format("{}", given),
      fmt::format(
          "must be the size of the struct, at most {} in this version of attnjit, whole words",
          known),
      "set it to sizeof of the struct, and use a libattnjit.so that is not older than its header");
}

}  // namespace attnjit::c_abi

extern "C" {

const char* attnjit_status_name(attnjit_status status) {
  static constexpr const char* names[] = {"ATTNJIT_OK",
                                          "ATTNJIT_INVALID_ARGUMENT",
                                          "ATTNJIT_INVALID_DESCRIPTOR",
                                          "ATTNJIT_INVALID_CALL",
                                          "ATTNJIT_COLD_KERNEL",
                                          "ATTNJIT_MISSING_KERNEL",
                                          "ATTNJIT_COMPILE_FAILED",
                                          "ATTNJIT_NO_TOOLCHAIN",
                                          "ATTNJIT_NO_DRIVER",
                                          "ATTNJIT_CUDA_FAILED",
                                          "ATTNJIT_INVALID_TEMPLATES",
                                          "ATTNJIT_OUT_OF_MEMORY",
                                          "ATTNJIT_INTERNAL_ERROR",
                                          "ATTNJIT_NOT_STORED"};
  static_assert(std::size(names) == ATTNJIT_NOT_STORED + 1);
  const bool is_known = status >= 0 && status <= ATTNJIT_NOT_STORED;
  return is_known ? names[status] : "unknown status";
}

const char* attnjit_last_message(void) {
  return attnjit::c_abi::last_error().message.c_str();
}

const char* attnjit_last_violations(void) {
  const std::string& violations = attnjit::c_abi::last_error().violations;
  return violations.empty() ? "[]" : violations.c_str();
}

uint32_t attnjit_abi_version(void) {
  return ATTNJIT_ABI_VERSION;
}

const char* attnjit_version(void) {
  return ATTNJIT_VERSION;
}

}  // extern "C"
