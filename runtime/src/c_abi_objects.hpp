// What the handles of the C interface stand for. Private to the c_abi files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/attnjit.h"
#include "attnjit/device_memory.hpp"
#include "attnjit/paged_decode.hpp"
#include "c_abi_handles.hpp"

namespace attnjit::c_abi {

enum class PointerTrust {
  asked,    // each tensor's memory is looked up in the driver
  trusted,  // by the caller's choice
};

struct Runtime {
  std::unique_ptr<AttentionRuntime> attention;
  int device = 0;  // CUDA ordinal
  PointerTrust trust = PointerTrust::asked;
  std::shared_ptr<const DeviceAllocator> allocator;  // null: the driver
};

using AnyPrepared =
    std::variant<std::shared_ptr<const PreparedDecode>, std::shared_ptr<const PreparedPrefill>,
                 std::shared_ptr<const PreparedSparseMla>, std::shared_ptr<const PreparedAppend>,
                 std::shared_ptr<const PreparedMerge>>;

struct Kernel {
  AnyPrepared prepared;
  PointerTrust trust = PointerTrust::asked;
  std::shared_ptr<const DeviceAllocator> allocator;
};

struct Plan {
  DecodePlan decode;
  PointerTrust trust = PointerTrust::asked;
};

// Of the process, and never destroyed: threads may still be here when it ends.
HandleTable<Runtime, 1>& runtimes();
HandleTable<Kernel, 2>& kernels();
HandleTable<Plan, 3>& plans();

// The kernel as one of type `Prepared`. Throws InvalidArgument, naming the operation that it is of
// and `call`, the function that does not run those.
[[noreturn]] void fail_on_operation(const Kernel& kernel, std::string_view call);

template <typename Prepared>
const std::shared_ptr<const Prepared>& prepared_as(const Kernel& kernel, std::string_view call) {
  const auto* prepared = std::get_if<std::shared_ptr<const Prepared>>(&kernel.prepared);
  if (prepared == nullptr) {
    fail_on_operation(kernel, call);
  }
  return *prepared;
}

}  // namespace attnjit::c_abi
