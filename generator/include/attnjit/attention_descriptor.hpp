// What an attention call looks like: everything that shapes its kernel, nothing that changes from
// call to call (batch, lengths, pointers, the softmax scale). First arrow of the straight line:
//   AttentionDescriptor -> validate -> select_config -> KernelConfig -> render.
// A plain value; compare, copy and share it freely between threads.
#pragma once

#include <string>
#include <string_view>

namespace attnjit {

// The operations of the contract (their rows in generator/README.md).
enum class Operation {
  decode,              // paged decode: MLA (V a prefix of K), MQA, GQA, MHA; seqlen_q >= 1
  prefill,             // ragged or dense forward
  prefill_kvcache,     // prefill that reads, and may write, a paged cache
  mla_prefill_rope,    // q and k split into nope and rope parts; rope comes from the KV cache
  sparse_mla_decode,   // token-sparse MLA over a cache
  sparse_mla_prefill,  // token-sparse MLA over ragged KV
  append_kv_cache,     // scatter new K and V into a paged cache
  merge_states,        // merge partial results by their LSE
};

enum class DataType { bf16, fp16, fp32, fp8_e4m3, fp8_e5m2, uint8, int32, int64 };

// Where the keys and values of a request lie.
enum class KvLayout {
  paged,   // pages of page_size tokens, found through a block table
  ragged,  // [total_kv, num_kv_heads, head_dim], cut by row offsets
  dense,   // [batch, seqlen_kv, num_kv_heads, head_dim] in some order
};

// Order of the dimensions inside a page (paged) or tensor (dense). Kernels take strides, so a tag
// changes checks and alignment, never the generated code.
enum class KvLayoutTag { nhd, hnd, bshd, bhsd, thd };

// How V relates to K.
enum class ValueSource {
  separate,     // its own tensor
  prefix_of_k,  // the first head_dim_v columns of K (MLA's latent)
};

enum class MaskKind {
  none,
  causal,          // bottom-right aligned
  sliding_window,  // window_left keys before, window_right keys after the diagonal
  chunked,         // keys of the query's own chunk of chunk_size absolute positions
  chunked_causal,
  prefix_lm,
  document,               // equal segment ids
  tree,                   // packed bits over the draft tokens of speculative decoding
  materialized_bool,      // uint8, non-zero = visible
  materialized_additive,  // fp16, bf16 or fp32, added to the scaled score
  materialized_bits,
  custom,    // a CUDA expression of (b, h, q, k): mask_expression
  composed,  // other masks joined by and and or: mask_formula
};

enum class ScoreModifier {
  none,
  softcap,
  alibi,
  additive_bias,  // fp16, bf16 or fp32 of each query and key, added to the scaled score
  custom,         // a CUDA expression of (score, b, h, q, k): score_expression
};

enum class Sparsity { none, block, token };

// What a token of a token-sparse cache is made of: 64 columns of rope in bf16 always, and the
// others.
enum class KvEncoding {
  plain,    // head_dim_qk columns of dtype_kv
  fp8_656,  // 656 bytes: 512 e4m3, 4 fp32 scales of 128 columns each, rope (DeepSeek-V3.2)
  fp8_584,  // 584 bytes a token: in each page first the tokens' 448 e4m3 and rope, 576 bytes each,
            // then their 7 e8m0 scales of 64 columns each and a byte of padding (MODEL1)
};

// At what grain an fp8 tensor's scales lie: one for all; one per request and kv head; one per
// token, its heads sharing it or not; or one per scale_block columns of a token.
enum class ScaleGrain { none, per_tensor, per_head, per_token, per_block };

struct AttentionDescriptor {
  Operation operation = Operation::decode;

  DataType dtype_q = DataType::bf16;
  DataType dtype_kv = DataType::bf16;
  DataType dtype_out = DataType::bf16;
  // Of mla_prefill_rope: of k_rope, and of q_rope where that is a tensor of its own.
  DataType dtype_rope = DataType::bf16;
  bool q_rope_apart = false;  // q has head_dim_v columns, and q_rope those of the rope

  int head_dim_qk = 128;
  int head_dim_v = 128;
  int num_q_heads = 32;
  int num_kv_heads = 8;

  // The most query tokens per request that a call brings: 1 for plain decode, 1 + drafts for
  // speculative decode, 0 for "any" (prefill). Decides the row tile; a call may bring fewer.
  int max_seqlen_q = 1;

  KvLayout kv_layout = KvLayout::paged;
  KvLayoutTag kv_layout_tag = KvLayoutTag::nhd;
  int page_size = 64;  // tokens; 0 unless kv_layout is paged
  KvEncoding kv_encoding = KvEncoding::plain;
  ValueSource value_source = ValueSource::separate;

  MaskKind mask = MaskKind::causal;
  DataType dtype_mask = DataType::uint8;  // of a materialized mask
  int window_left = -1;                   // keys; -1 = unbounded
  int window_right = -1;
  int chunk_size = 0;           // keys, for the chunked masks
  std::string mask_expression;  // of a custom mask: bool, of int b, h, q, k, seqlen_q, seqlen_kv
  std::string mask_formula;     // of a composed mask: "causal and (document or prefix_lm)"

  ScoreModifier score_modifier = ScoreModifier::none;
  DataType dtype_bias = DataType::fp32;  // of an additive bias
  std::string score_expression;          // of a custom modifier: float, of float score and those
  bool has_sinks = false;                // one natural-log logit per q head in the denominator

  Sparsity sparsity = Sparsity::none;
  int sparsity_block = 0;  // tokens per block of a block-sparse layout
  int topk = 0;            // tokens per query of a token-sparse layout, where known; shapes nothing

  bool returns_lse = true;
  // A request's result is the same to the bit whatever else is in the batch: it is cut in places of
  // its own, and merged in an order of its own.
  bool batch_invariant = false;
  ScaleGrain scales_q = ScaleGrain::none;
  ScaleGrain scales_kv = ScaleGrain::none;
  ScaleGrain scales_rope = ScaleGrain::none;
  ScaleGrain scales_out = ScaleGrain::none;
  int scale_block = 0;  // columns that share a scale of grain per_block

  int q_per_kv() const { return num_kv_heads > 0 ? num_q_heads / num_kv_heads : 0; }

  friend bool operator==(const AttentionDescriptor&, const AttentionDescriptor&) = default;
};

std::string_view to_string(Operation);
std::string_view to_string(DataType);
std::string_view to_string(KvLayout);
std::string_view to_string(KvLayoutTag);
std::string_view to_string(ValueSource);
std::string_view to_string(MaskKind);
std::string_view to_string(ScoreModifier);
std::string_view to_string(Sparsity);
std::string_view to_string(KvEncoding);
std::string_view to_string(ScaleGrain);

// The mask in short, with what else shapes the softmax: "causal", "sliding_window 127/0, sinks",
// "(causal and custom) \"q - k < 128\"".
std::string describe_mask(const AttentionDescriptor&);

// The types in short, with the grains of their scales: "bf16" if q, k, v and out are alike, else
// "bf16/fp8_e4m3/bf16 scales none/per_token" of q and of k and v, "bf16 rope fp8_e4m3/per_block
// 64".
std::string describe_types(const AttentionDescriptor&);

// Size of one element in bytes.
int size_bytes(DataType);

// Calls visit(name, member) for every field, in a fixed order: JSON, keys and tests are built on
// it, so a new field cannot be forgotten by one of them.
template <typename Descriptor, typename Visitor>
void for_each_field(Descriptor& descriptor, Visitor&& visit) {
  visit("operation", descriptor.operation);
  visit("dtype_q", descriptor.dtype_q);
  visit("dtype_kv", descriptor.dtype_kv);
  visit("dtype_out", descriptor.dtype_out);
  visit("dtype_rope", descriptor.dtype_rope);
  visit("q_rope_apart", descriptor.q_rope_apart);
  visit("head_dim_qk", descriptor.head_dim_qk);
  visit("head_dim_v", descriptor.head_dim_v);
  visit("num_q_heads", descriptor.num_q_heads);
  visit("num_kv_heads", descriptor.num_kv_heads);
  visit("max_seqlen_q", descriptor.max_seqlen_q);
  visit("kv_layout", descriptor.kv_layout);
  visit("kv_layout_tag", descriptor.kv_layout_tag);
  visit("page_size", descriptor.page_size);
  visit("kv_encoding", descriptor.kv_encoding);
  visit("value_source", descriptor.value_source);
  visit("mask", descriptor.mask);
  visit("dtype_mask", descriptor.dtype_mask);
  visit("window_left", descriptor.window_left);
  visit("window_right", descriptor.window_right);
  visit("chunk_size", descriptor.chunk_size);
  visit("mask_expression", descriptor.mask_expression);
  visit("mask_formula", descriptor.mask_formula);
  visit("score_modifier", descriptor.score_modifier);
  visit("dtype_bias", descriptor.dtype_bias);
  visit("score_expression", descriptor.score_expression);
  visit("has_sinks", descriptor.has_sinks);
  visit("sparsity", descriptor.sparsity);
  visit("sparsity_block", descriptor.sparsity_block);
  visit("topk", descriptor.topk);
  visit("returns_lse", descriptor.returns_lse);
  visit("batch_invariant", descriptor.batch_invariant);
  visit("scales_q", descriptor.scales_q);
  visit("scales_kv", descriptor.scales_kv);
  visit("scales_rope", descriptor.scales_rope);
  visit("scales_out", descriptor.scales_out);
  visit("scale_block", descriptor.scale_block);
}

}  // namespace attnjit
