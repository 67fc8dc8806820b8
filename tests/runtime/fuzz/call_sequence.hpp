// A sequence of calls of the C interface that the fuzzer's bytes decide, and the handles that it
// was given. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "c_abi_calls.hpp"
#include "fuzz_bytes.hpp"

namespace attnjit::test {

class CallSequence {
 public:
  explicit CallSequence(FuzzBytes bytes) : bytes_(bytes) {}

  void run();

 private:
  using Action = void (CallSequence::*)();

  std::uint64_t pick_handle(std::uint64_t right);
  std::string pick_descriptor();
  const char* pick_text(const std::string& text) {
    return bytes_.one_in(32) ? nullptr : text.c_str();
  }
  void* pick_stream() { return device_address(static_cast<int>(bytes_.below(2))); }

  void change_driver();
  void create_runtime();
  void ask_descriptor();
  void prepare();
  void create_plan();
  void update_plan();
  void end_handle();
  void decode();
  void prefill();
  void plan_prefill();
  void sparse_mla();
  void append();
  void merge();
  void end_all();

  template <typename Call>
  const RightCall<Call>& pick(const std::vector<RightCall<Call>>& calls) {
    return calls[bytes_.below(calls.size())];
  }
  template <typename Call>
  const Call* pick_call(const Call& call) {
    return bytes_.one_in(64) ? nullptr : &call;
  }

  FuzzBytes bytes_;
  std::vector<attnjit_runtime> runtimes_;
  std::vector<attnjit_kernel> kernels_;
  std::vector<attnjit_plan> plans_;
  std::vector<std::uint64_t> stale_;
};

}  // namespace attnjit::test
