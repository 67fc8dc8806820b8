// PrefillCase -> device tensors: random inputs, NaN in every slot that nothing owns or reaches,
// block tables permuted and poisoned past the end and before what is reached. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/prefill.hpp"
#include "check_arguments.h"
#include "check_kernels.hpp"
#include "prefill_case.hpp"
#include "reference_attention.hpp"
#include "scaled_tensor.hpp"

namespace attnjit::check {

class PrefillProblem {
 public:
  // `table_seed` permutes the pages of a paged cache; all values follow from prefill_case.seed, so
  // that two problems that differ in table_seed only have the same result. Throws CudaError.
  PrefillProblem(const CheckKernels& kernels, PrefillCase prefill_case, const DeviceStream& stream,
                 std::uint64_t table_seed);

  const PrefillCase& prefill_case() const { return case_; }
  const PrefillCall& call() const { return call_; }
  ReferenceCall reference_call() const;

  // Fills out and lse with NaN.
  void poison_outputs(const DeviceStream& stream);

  // The bytes of out, then of lse; between and around rows too.
  std::vector<unsigned char> download_outputs(const DeviceStream& stream) const;

 private:
  void make_small_tensors(const DeviceStream& stream);
  void make_block_table(const DeviceStream& stream, std::uint64_t table_seed);
  void make_queries(const DeviceStream& stream);
  TensorView make_keys(DeviceBuffer& buffer, ScaledTensor& scaled, int head_dim, std::uint64_t seed,
                       const DeviceStream& stream);
  void make_outputs(const DeviceStream& stream);

  const CheckKernels& kernels_;
  PrefillCase case_;
  PrefillCall call_;
  std::vector<KeyRange> reachable_;  // by request
  std::int64_t num_pages_ = 0;       // of the pool, or of each request's cache
  std::vector<DeviceBuffer> small_;  // what make_small_tensors uploads
  DeviceBuffer q_, k_, v_, block_table_, out_, out_scale_, lse_;
  ScaledTensor scaled_q_, scaled_k_, scaled_v_;  // of fp8 tensors
};

}  // namespace attnjit::check
