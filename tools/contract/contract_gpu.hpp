// What the cases of the contract run on: one GPU, with the kernels of checks. One thread at a time.
#pragma once

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "decode_checker.hpp"
#include "prefill_checker.hpp"
#include "reference_attention.hpp"
#include "reference_comparison.hpp"
#include "sparse_mla_checker.hpp"

namespace attnjit::contract {

struct ContractGpu {
  // Compiles or finds the check kernels. Throws as load_check_kernels does.
  ContractGpu(AttentionRuntime& attention_runtime, int device);

  AttentionRuntime& runtime;
  DeviceStream stream;
  check::CheckKernels kernels;
  check::DecodeChecker decode;
  check::PrefillChecker prefill;
  check::SparseMlaChecker sparse_mla;

  int device() const { return stream.device(); }
};

// What the call's out and lse hold against the reference; `num_values` of them are owed.
check::CheckResult compare(const ContractGpu& gpu, const check::ReferenceCall& reference,
                           std::int64_t num_values);

// Passed if `failure` is empty.
check::CheckResult result_of(std::string failure);

}  // namespace attnjit::contract
