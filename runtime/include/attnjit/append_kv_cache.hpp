// Writes the K and V of new tokens into a paged cache (the cache write of operation 4 of the
// contract), as they are or quantised to fp8. One launch, which may be captured into a graph. Runs
// without compiling, allocating or copying to the host; thread-safe.
#pragma once

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/tensor_view.hpp"

struct CUstream_st;

namespace attnjit {

// The descriptor of operation append_kv_cache for the cache of `attention`: its dtype_q, which is
// that of the new K and V, dtype_kv, head dims, kv heads, pages, value_source and scales_kv. The
// rest shapes nothing and takes its default, so that like caches share a kernel.
AttentionDescriptor append_kv_cache_descriptor(const AttentionDescriptor& attention);

// New tokens and where they go: the last positions of each request through `block_table` and
// `seq_lens`, or the slots of `slot_mapping`. Rows of K and V are 16-byte aligned, with stride 1 in
// the last dimension and all other strides multiples of 8 elements.
//
// A token is not written if it is no request's, if its position is negative (a request with fewer
// keys than new tokens) or past the block table's columns, or if its page is not one of the cache.
// Nothing else in the cache changes. No two tokens of a call may go to one place.
struct AppendKvCacheCall {
  TensorView k_new;  // [total_new, num_kv_heads, head_dim_qk], the requests' tokens end to end; or
                     // [batch, seqlen_new, num_kv_heads, head_dim_qk]. Of the descriptor's dtype_q
  TensorView v_new;  // the same with head_dim_v; not given if v is a prefix of k
  TensorView k_cache;  // nhd: [num_pages, page_size, num_kv_heads, head_dim_qk]; hnd: dimensions 1
                       // and 2 swapped; rank 5 = one such pool per request, batch first
  TensorView v_cache;  // the same with head_dim_v; not given if v is a prefix of k
  TensorView
      new_offsets;  // int32 [batch + 1], with total_new: tokens new_offsets[b] to
                    // new_offsets[b + 1] - 1 are those of request b; those outside are no
                    // request's. With slots only needed for a rank-5 cache, scales per request
  TensorView block_table;   // int32 [batch, max_pages]: physical page of each page of a request
  TensorView seq_lens;      // int32 [batch]: keys per request, the new ones included
  TensorView slot_mapping;  // in place of block_table and seq_lens: int32 or int64 [total_new] or
                            // [batch * seqlen_new]: page * page_size + row; negative = not written
  // What values are divided by before they are rounded to fp8, in fp32, finite and not 0: [1] if
  // scales_kv is per_tensor; [num_kv_heads] or [batch, num_kv_heads] if it is per_head.
  TensorView k_scale;
  TensorView v_scale;  // not given if v is a prefix of k
};

// Queues the write on `stream`. fp8 codes are those nearest to value / scale, the even one of two;
// what is past the largest finite value, or infinite, becomes that value, NaN becomes 0x7f. Throws
// ArgumentError listing everything that is wrong, CudaError.
void append_kv_cache(const PreparedAppend& kernel, const AppendKvCacheCall& call,
                     CUstream_st* stream);

}  // namespace attnjit
