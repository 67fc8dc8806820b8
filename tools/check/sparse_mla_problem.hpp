// A token-sparse problem on the device: tensors filled as its case says, the call, the fp64
// reference. One thread at a time.
#pragma once

#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/sparse_mla.hpp"
#include "check_kernels.hpp"
#include "sparse_mla_case.hpp"
#include "sparse_mla_contents.hpp"

namespace attnjit::check {

struct SparseMlaReference {
  DeviceBuffer out;         // double [query tokens, num_q_heads, head_dim_v]
  DeviceBuffer lse;         // double [query tokens, num_q_heads], natural logarithm
  DeviceBuffer max_logits;  // the same
  DeviceBuffer magnitude;   // double [query tokens, num_q_heads]: of the products of any score
};

class SparseMlaProblem {
 public:
  // Every byte of the pools that no index names is `unnamed`: 0xff is NaN in every type. All else
  // follows from the case alone.
  SparseMlaProblem(const CheckKernels& kernels, SparseMlaCase sparse_case,
                   const DeviceStream& stream, unsigned char unnamed);

  const SparseMlaCase& sparse_case() const { return case_; }
  const SparseMlaCall& call() const { return call_; }

  // Every byte of out, lse and max_logits becomes 0xff.
  void poison_outputs(const DeviceStream& stream);

  // The bytes of out, lse and max_logits, with what is between and behind them.
  std::vector<unsigned char> download_outputs(const DeviceStream& stream) const;

  // Whether nothing was written between and behind the rows of out, nor behind the others.
  bool is_padding_untouched(const std::vector<unsigned char>& outputs) const;

  SparseMlaReference compute_reference(const DeviceStream& stream) const;

 private:
  struct Pool {
    DeviceBuffer bytes;
    DeviceBuffer indices;
    DeviceBuffer lengths;
  };

  void make_queries(const DeviceStream& stream);
  void make_outputs(const DeviceStream& stream);
  // Its tokens that lists name become rows of the reference.
  void make_pool(const TokenPoolCase& pool, std::uint64_t seed, unsigned char unnamed, Pool& made,
                 TensorView& kv, TensorView& indices, TensorView& lengths,
                 const DeviceStream& stream);

  const CheckKernels& kernels_;
  SparseMlaCase case_;
  SparseMlaCall call_;
  DeviceBuffer q_;
  Pool pool_;
  Pool extra_pool_;
  DeviceBuffer sinks_;
  DeviceBuffer out_;
  DeviceBuffer lse_;
  DeviceBuffer max_logits_;
  std::vector<float> token_values_;           // [rows, head_dim_qk]
  std::vector<std::vector<int>> token_rows_;  // of these, [query tokens][…]
};

}  // namespace attnjit::check
