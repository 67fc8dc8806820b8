// Decode over a paged KV cache: plan (once per step) and run (once per layer). Operation 11 of the
// contract, and what MLA decode (mla_decode.hpp) and the FlashMLA façade (flash_mla.hpp) stand on.
// Nothing here compiles; run allocates nothing. A plan is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/decode_grid.hpp"
#include "attnjit/device_memory.hpp"
#include "attnjit/tensor_view.hpp"

struct CUstream_st;

namespace attnjit {

// The tensors of one call. All 16-bit tensors are 16-byte aligned, with stride 1 in the last
// dimension and all other strides multiples of 8 elements.
struct DecodeCall {
  TensorView q;        // [batch, seqlen_q, num_q_heads, head_dim_qk]
  TensorView k_cache;  // nhd: [num_pages, page_size, num_kv_heads, head_dim_qk]; hnd: dimensions
                       // 1 and 2 swapped; rank 5 = one such pool per request, batch first
  TensorView v_cache;  // the same with head_dim_v; not given if v is a prefix of k
  TensorView block_table;  // int32 [batch, max_pages]: physical page of each page of a request
  TensorView seq_lens;     // int32 [batch]: keys per request, those being decoded included
  TensorView mask;  // of a materialized mask: [batch|1, num_q_heads|1, seqlen_q|1, keys]; keys
                    // past its end are hidden
  // Of a descriptor with sinks: fp32 [num_q_heads], contiguous; a logit per head, natural
  // logarithm, added to the softmax's denominator. Infinities are allowed.
  TensorView sinks;
  TensorView out;  // [batch, seqlen_q, num_q_heads, head_dim_v]
  TensorView lse;  // fp32 [batch, num_q_heads, seqlen_q], natural logarithm, over the keys alone:
                   // without the sink; or not given
  float softmax_scale = 1.0f;
};

// How the KV of a batch is split over the device, in device memory that it owns. Made outside a
// graph; `update` may be captured, and replays then follow the lengths in device memory.
class DecodePlan {
 public:
  // For batches of up to `max_batch` requests with exactly `seqlen_q` query tokens each. A
  // batch-invariant descriptor also wants `max_seqlen_kv`, the keys of the longest request: its
  // workspace holds every chunk of every request. Longer ones are still computed rightly. The
  // schedule's memory is the driver's, or `allocator`'s. Throws ArgumentError, CudaError.
  DecodePlan(std::shared_ptr<const PreparedDecode> kernels, int max_batch, int seqlen_q,
             int max_seqlen_kv = 0, const std::shared_ptr<const DeviceAllocator>& allocator = {});

  // Cuts the batch by the lengths in device memory, seq_lens: int32 [batch], in stream order,
  // without a copy to the host. The schedule only balances the work: if lengths have changed when
  // run comes, results are still right.
  void update(const int* device_seq_lens, int batch, CUstream_st* stream);

  // The same from lengths on the host. Not while `stream` is being captured: ArgumentError.
  void update(std::span<const int> seq_lens, CUstream_st* stream);

  // Bytes of device memory that run_decode needs, for any lengths. 16-byte aligned.
  std::int64_t workspace_bytes() const;

  const PreparedDecode& kernels() const { return *kernels_; }
  const DecodeGrid& grid() const { return grid_; }
  int seqlen_q() const { return seqlen_q_; }
  int batch() const { return batch_; }  // of the last update

 private:
  friend void run_decode(const DecodePlan&, const DecodeCall&, void*, std::int64_t, CUstream_st*);

  void check_batch(std::int64_t batch) const;

  std::shared_ptr<const PreparedDecode> kernels_;
  int max_batch_;
  int seqlen_q_;
  int batch_ = 0;
  bool may_split_ = true;  // false if the last update knows that no request is split
  DecodeGrid grid_;
  DeviceBuffer parts_;
  DeviceBuffer piece_offsets_;
  DeviceBuffer unit_offsets_;
};

// Queues the attention of `call` on `stream`, split as `plan` says. `workspace` is device memory of
// at least plan.workspace_bytes(), not used by anything else until the work has ended. Throws
// ArgumentError listing everything that is wrong, CudaError.
void run_decode(const DecodePlan& plan, const DecodeCall& call, void* workspace,
                std::int64_t workspace_bytes, CUstream_st* stream);

}  // namespace attnjit
