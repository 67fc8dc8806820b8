// Token-sparse MLA: each query token attends to the tokens that its indices name (operations
// sparse_mla_prefill, over rows of tokens, and sparse_mla_decode, over pages, plain or encoded in
// fp8; row 10 of the contract). Needs no plan and no workspace; runs without compiling or
// allocating. Thread-safe.
#pragma once

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/tensor_view.hpp"

struct CUstream_st;

namespace attnjit {

struct SparseMlaShape {
  int num_q_heads = 128;
  int head_dim_qk = 576;  // of encoding fp8_584: 512
  int head_dim_v = 512;
  int page_size = 64;  // tokens; any positive number; of a decode
  KvEncoding kv_encoding = KvEncoding::plain;
  DataType dtype = DataType::bf16;  // of q, out and plain tokens
  bool has_sinks = false;
};

AttentionDescriptor sparse_mla_decode_descriptor(const SparseMlaShape& shape);

// Reads neither page_size nor kv_encoding: tokens are rows, and plain.
AttentionDescriptor sparse_mla_prefill_descriptor(const SparseMlaShape& shape);

// The tensors of one call. q, out and plain tokens are 16-byte aligned, with stride 1 in the last
// dimension and all other strides multiples of 8 elements; so are, in bytes and by 16, tokens of
// fp8_656, and by 8 pages of fp8_584.
//
// An index t names row t of kv, or the (t % page_size)-th token of page t / page_size. One that
// names no token, -1 or any other, is skipped; one that is there twice counts twice. Tokens that no
// index names are not read and may hold anything.
struct SparseMlaCall {
  TensorView q;  // decode: [batch, seqlen_q, num_q_heads, head_dim_qk]; prefill: [s_q, num_q_heads,
                 // head_dim_qk]
  // Decode: nhd [num_pages, page_size, 1, width], hnd: dimensions 1 and 2 swapped. width is
  // head_dim_qk, or, of dtype fp8_e4m3 or uint8, the 656 or 584 bytes of an encoded token (a page
  // of fp8_584 is seen as such tokens one after the other). Prefill: [s_kv, 1, head_dim_qk].
  TensorView kv;
  TensorView indices;      // int32; decode: [batch, seqlen_q, topk]; prefill: [s_q, 1, topk]; rows
                           // may be strided
  TensorView topk_length;  // int32 [batch], of a prefill [s_q]: indices of each list that are
                           // looked at, what is behind may be anything; optional
  // Of a decode, optional: a second pool, as kv but with pages of its own size, whose tokens join
  // those of the first.
  TensorView extra_kv;
  TensorView extra_indices;
  TensorView extra_topk_length;
  TensorView sinks;       // fp32 [num_q_heads], as of DecodeCall
  TensorView out;         // as q with head_dim_v
  TensorView lse;         // fp32; decode: [batch, num_q_heads, seqlen_q]; prefill: [s_q,
                          // num_q_heads]; natural logarithm, without the sink; -inf where nothing
                          // is named, and out is 0; or not given
  TensorView max_logits;  // fp32, as lse: the largest scaled score, -inf where nothing is named; or
                          // not given
  float softmax_scale = 1.0f;
};

// Queues the attention of `call`. Throws ArgumentError listing everything that is wrong, CudaError.
void run_sparse_mla(const PreparedSparseMla& kernel, const SparseMlaCall& call,
                    CUstream_st* stream);

}  // namespace attnjit
