#include "c_abi_handles.hpp"

#include <fmt/format.h>

#include "c_abi_status.hpp"

namespace attnjit::c_abi {

void PatientMutex::lock_shared() {
  if (writer_waits_.load(std::memory_order_acquire)) {
    const std::lock_guard pass(gate_);
  }
  mutex_.lock_shared();
}

void PatientMutex::lock() {
  gate_.lock();
  writer_waits_.store(true, std::memory_order_release);
  mutex_.lock();
}

void PatientMutex::unlock() {
  mutex_.unlock();
  writer_waits_.store(false, std::memory_order_release);
  gate_.unlock();
}

void fail_on_handle(std::string_view name, std::uint64_t handle) {
  throw InvalidArgument(name, handle == 0 ? "0" : fmt::format("{:#x}", handle),
                        fmt::format("is no {} of this process", name),
                        "pass what attnjit gave, and not after its end");
}

void fail_on_full_table() {
  throw InvalidArgument("handles", "1048576", "are the most of one kind at a time",
                        "release those that are used no more");
}

}  // namespace attnjit::c_abi
