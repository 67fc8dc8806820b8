// DecodeCase -> device tensors: random inputs, NaN in every slot that nothing owns or sees, block
// tables permuted and poisoned past the end and before a window. Used by checks and benchmarks. One
// thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/paged_decode.hpp"
#include "check_arguments.h"
#include "check_kernels.hpp"
#include "decode_case.hpp"
#include "reference_attention.hpp"

namespace attnjit::check {

class DecodeProblem {
 public:
  // `table_seed` permutes the pages; all values follow from decode_case.seed, so that two problems
  // that differ in table_seed only have the same result.
  DecodeProblem(const CheckKernels& kernels, DecodeCase decode_case, const DeviceStream& stream,
                std::uint64_t table_seed);

  const DecodeCase& decode_case() const { return case_; }
  const DecodeCall& call() const { return call_; }
  ReferenceCall reference_call() const;
  std::int64_t num_values() const;  // outputs and LSEs
  const int* device_seq_lens() const { return static_cast<const int*>(seq_lens_.data()); }
  int max_seqlen() const { return max_seqlen_; }              // at least 1
  const std::vector<float>& sinks() const { return sinks_; }  // empty, or one per query head

  // Other lengths for the same cache, none longer than before.
  void replace_lengths(const std::vector<int>& seq_lens, const DeviceStream& stream);

  // Fills out and lse with NaN.
  void poison_outputs(const DeviceStream& stream);

  // The bytes of out, then of lse.
  std::vector<unsigned char> download_outputs(const DeviceStream& stream) const;

 private:
  void make_block_table(const DeviceStream& stream, std::uint64_t table_seed);
  TensorView make_cache(DeviceBuffer& buffer, int head_dim, std::uint64_t seed,
                        const DeviceStream& stream);
  void fill(void* data, std::int64_t count, DataType type, std::uint64_t seed,
            const DeviceStream& stream);
  void make_mask(const DeviceStream& stream);
  void make_sinks(const DeviceStream& stream);

  const CheckKernels& kernels_;
  DecodeCase case_;
  DecodeCall call_;
  int max_seqlen_ = 1;
  std::int64_t num_pages_ = 0;     // of the pool, or of each request's cache
  std::vector<int> first_tokens_;  // before which no query of a request sees any
  std::vector<float> sinks_;
  DeviceBuffer q_, k_cache_, v_cache_, block_table_, seq_lens_, device_first_tokens_, mask_,
      device_sinks_, out_, lse_;
};

}  // namespace attnjit::check
