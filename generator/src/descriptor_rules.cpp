// The rules of what is legal, whatever is served of it.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/mask_formula.hpp"
#include "attnjit/user_expression.hpp"
#include "descriptor_predicates.hpp"

namespace attnjit {
namespace {

using D = const AttentionDescriptor&;

bool is_paged_operation(Operation operation) {
  return operation == Operation::decode || operation == Operation::prefill_kvcache ||
         operation == Operation::append_kv_cache || operation == Operation::sparse_mla_decode;
}

bool has_rope(D d) {
  return d.operation == Operation::mla_prefill_rope;
}

// What the rope's columns of k are multiplied with is q's, of 16 bits.
bool rope_type_fits(D d) {
  return is_fp8(d.dtype_rope) || d.dtype_rope == (is_fp8(d.dtype_q) ? DataType::bf16 : d.dtype_q);
}

bool has_block_scales(D d) {
  return d.scales_q == ScaleGrain::per_block || d.scales_kv == ScaleGrain::per_block ||
         d.scales_rope == ScaleGrain::per_block;
}

bool is_token_sparse(Operation operation) {
  return operation == Operation::sparse_mla_decode || operation == Operation::sparse_mla_prefill;
}

constexpr MaskSet materialized_masks = mask_bit(MaskKind::materialized_bool) |
                                       mask_bit(MaskKind::materialized_additive) |
                                       mask_bit(MaskKind::materialized_bits);
constexpr MaskSet chunked_masks = mask_bit(MaskKind::chunked) | mask_bit(MaskKind::chunked_causal);

// Whether one of `masks` is the descriptor's, or one of those that its mask is composed of.
bool has_any(D d, MaskSet masks) {
  const std::vector<MaskSet> clauses = mask_formula_of(d).clauses;
  return std::any_of(clauses.begin(), clauses.end(),
                     [&](MaskSet clause) { return (clause & masks) != 0; });
}

bool has_window(D d) {
  return has_mask(d, MaskKind::sliding_window);
}

bool is_composed(D d) {
  return d.mask == MaskKind::composed;
}

std::string formula_fault(D d) {
  try {
    parse_mask_formula(d.mask_formula);
  } catch (const MaskFormulaError& error) {
    return error.what();
  }
  return "";
}

std::string mask_expression_fault(D d) {
  return find_expression_fault(d.mask_expression);
}

std::string score_expression_fault(D d) {
  return find_expression_fault(d.score_expression);
}

// Masks that are read from the one tensor `mask`.
int count_mask_tensors(D d) {
  MaskSet read = 0;
  for (const MaskSet clause : mask_formula_of(d).clauses) {
    read |= clause & (materialized_masks | mask_bit(MaskKind::tree));
  }
  return std::popcount(read);
}

// An additive mask shows no keys that another could show in its place: it changes scores.
bool has_optional_additive(D d) {
  const std::vector<MaskSet> clauses = mask_formula_of(d).clauses;
  constexpr MaskSet additive = mask_bit(MaskKind::materialized_additive);
  return has_any(d, additive) && std::any_of(clauses.begin(), clauses.end(), [](MaskSet clause) {
           return (clause & additive) == 0;
         });
}

bool is_head_dim(int dim, int largest) {
  return dim >= 8 && dim <= largest && dim % 8 == 0;
}

// Latent attention keeps K and V in one row and may be wider than any head that stands alone.
bool is_head_dim_qk(D d) {
  return d.value_source == ValueSource::prefix_of_k
             ? is_head_dim(d.head_dim_qk, 576)
             : is_head_dim(d.head_dim_qk, 256) || d.head_dim_qk == 512;
}

bool tag_fits(D d) {
  switch (d.kv_layout) {
    case KvLayout::paged:
      return d.kv_layout_tag == KvLayoutTag::nhd || d.kv_layout_tag == KvLayoutTag::hnd;
    case KvLayout::ragged:
      return d.kv_layout_tag == KvLayoutTag::thd;
    case KvLayout::dense:
      return d.kv_layout_tag == KvLayoutTag::bshd || d.kv_layout_tag == KvLayoutTag::bhsd;
  }
  return false;
}

bool mask_type_fits(D d) {
  if (has_mask(d, MaskKind::materialized_additive)) {
    return is_half(d.dtype_mask) || d.dtype_mask == DataType::fp32;
  }
  return !has_any(d, materialized_masks) || d.dtype_mask == DataType::uint8;
}

const std::array legality = {
    DescriptorRule{"dtype_q", "must be bf16, fp16, fp8_e4m3 or fp8_e5m2", "cast q to one of these",
                   [](D d) { return !is_half(d.dtype_q) && !is_fp8(d.dtype_q); }},
    DescriptorRule{"dtype_kv", "must be bf16, fp16, fp8_e4m3 or fp8_e5m2",
                   "store the KV cache as one of these",
                   [](D d) { return !is_half(d.dtype_kv) && !is_fp8(d.dtype_kv); }},
    DescriptorRule{"dtype_out", "must be bf16, fp16, fp8_e4m3 or fp8_e5m2",
                   "ask for one of these and cast afterwards",
                   [](D d) { return !is_half(d.dtype_out) && !is_fp8(d.dtype_out); }},
    DescriptorRule{"num_q_heads", "must be between 1 and 1024", "give the query heads of one GPU",
                   [](D d) { return d.num_q_heads < 1 || d.num_q_heads > 1024; }},
    DescriptorRule{"num_kv_heads", "must be between 1 and num_q_heads",
                   "give the key/value heads of one GPU",
                   [](D d) { return d.num_kv_heads < 1 || d.num_kv_heads > d.num_q_heads; }},
    DescriptorRule{"num_q_heads", "must be an integer multiple of num_kv_heads",
                   "adjust the q reshape or the head splitting",
                   [](D d) { return d.num_kv_heads > 0 && d.num_q_heads % d.num_kv_heads != 0; }},
    DescriptorRule{"head_dim_qk",
                   "must be a multiple of 8 up to 256, or 512; up to 576 if v is a prefix of k",
                   "pad the heads with zeros to the next multiple of 8",
                   [](D d) { return !is_head_dim_qk(d); }},
    DescriptorRule{
        "head_dim_v",
        "must be a multiple of 8 up to 256, or 512; up to head_dim_qk if v is a prefix of k",
        "pad the heads with zeros to the next multiple of 8",
        [](D d) {
          return d.value_source == ValueSource::prefix_of_k
                     ? !is_head_dim(d.head_dim_v, d.head_dim_qk)
                     : !is_head_dim(d.head_dim_v, 256) && d.head_dim_v != 512;
        }},
    DescriptorRule{"max_seqlen_q", "must be between 1 and 128 for decode",
                   "use operation prefill_kvcache for longer queries",
                   [](D d) {
                     return d.operation == Operation::decode &&
                            (d.max_seqlen_q < 1 || d.max_seqlen_q > 128);
                   }},
    DescriptorRule{"max_seqlen_q", "must not be negative", "give 0 for any number of query tokens",
                   [](D d) { return d.operation != Operation::decode && d.max_seqlen_q < 0; }},
    DescriptorRule{
        "kv_layout", "must be paged for an operation on a paged cache",
        "set kv_layout to paged and give page_size",
        [](D d) { return is_paged_operation(d.operation) && d.kv_layout != KvLayout::paged; }},
    DescriptorRule{
        "kv_layout", "must be ragged or dense for prefill",
        "use operation prefill_kvcache for a paged cache",
        [](D d) { return d.operation == Operation::prefill && d.kv_layout == KvLayout::paged; }},
    DescriptorRule{"kv_layout", "must be paged or dense, that of the rope, for mla_prefill_rope",
                   "name the layout of the cache that holds the rope; k and v are ragged",
                   [](D d) {
                     return d.operation == Operation::mla_prefill_rope &&
                            d.kv_layout == KvLayout::ragged;
                   }},
    DescriptorRule{
        "head_dim_qk", "must exceed head_dim_v, by the rope's columns, for mla_prefill_rope",
        "use operation prefill where k has all columns",
        [](D d) {
          return d.operation == Operation::mla_prefill_rope && d.head_dim_qk <= d.head_dim_v;
        }},
    DescriptorRule{"value_source", "must be separate for mla_prefill_rope",
                   "use operation decode or prefill_kvcache over the cache of latents",
                   [](D d) {
                     return d.operation == Operation::mla_prefill_rope &&
                            d.value_source != ValueSource::separate;
                   }},
    DescriptorRule{"kv_layout_tag",
                   "must be nhd or hnd (paged), thd (ragged), bshd or bhsd (dense)",
                   "name the order in which the memory lies", [](D d) { return !tag_fits(d); }},
    DescriptorRule{"page_size",
                   "must be between 1 and 256 if kv_layout is paged; any positive number for "
                   "sparse_mla_decode",
                   "re-page the cache, or view a larger page as several",
                   [](D d) {
                     const bool is_bounded = d.operation != Operation::sparse_mla_decode;
                     return d.kv_layout == KvLayout::paged &&
                            (d.page_size < 1 || (is_bounded && d.page_size > 256));
                   }},
    DescriptorRule{"page_size", "must be 0 unless kv_layout is paged", "remove page_size",
                   [](D d) { return d.kv_layout != KvLayout::paged && d.page_size != 0; }},
    DescriptorRule{"dtype_mask", "must be uint8 (bool, bits) or fp16, bf16, fp32 (additive)",
                   "cast the mask", [](D d) { return !mask_type_fits(d); }},
    DescriptorRule{
        "dtype_mask", "must be uint8 unless the mask is materialized", "remove dtype_mask",
        [](D d) { return !has_any(d, materialized_masks) && d.dtype_mask != DataType::uint8; }},
    DescriptorRule{
        "window_left", "must be -1 (unbounded) or more, and -1 unless mask is sliding_window",
        "set mask to sliding_window, or remove window_left",
        [](D d) { return d.window_left < -1 || (!has_window(d) && d.window_left != -1); }},
    DescriptorRule{
        "window_right", "must be -1 (unbounded) or more, and -1 unless mask is sliding_window",
        "set mask to sliding_window, or remove window_right",
        [](D d) { return d.window_right < -1 || (!has_window(d) && d.window_right != -1); }},
    DescriptorRule{
        "window_left", "must be bounded, or window_right must be, for a sliding window",
        "give the window, or set mask to none",
        [](D d) { return has_window(d) && d.window_left == -1 && d.window_right == -1; }},
    DescriptorRule{
        "chunk_size", "must be positive for chunked masks and 0 for all others",
        "give the keys per chunk, or remove chunk_size",
        [](D d) { return has_any(d, chunked_masks) ? d.chunk_size < 1 : d.chunk_size != 0; }},
    DescriptorRule{
        "mask_expression", "must be one CUDA expression if a mask is custom",
        "give a bool of int b, h, q and k, such as q - k < 128",
        [](D d) { return has_mask(d, MaskKind::custom) && !mask_expression_fault(d).empty(); },
        mask_expression_fault},
    DescriptorRule{
        "mask_expression", "must be empty unless a mask is custom",
        "set mask to custom, or remove mask_expression",
        [](D d) { return !has_mask(d, MaskKind::custom) && !d.mask_expression.empty(); }},
    DescriptorRule{"mask_formula", "must join masks by and, or and parentheses if mask is composed",
                   "give a formula such as causal and (document or prefix_lm)",
                   [](D d) { return is_composed(d) && !formula_fault(d).empty(); }, formula_fault},
    DescriptorRule{"mask_formula", "must be empty unless mask is composed",
                   "set mask to composed, or remove mask_formula",
                   [](D d) { return !is_composed(d) && !d.mask_formula.empty(); }},
    DescriptorRule{"mask_formula", "must come to at most 8 alternatives, each joined by and alone",
                   "join fewer masks by or, or write some as a custom one",
                   [](D d) { return mask_formula_of(d).clauses.size() > most_mask_clauses; }},
    DescriptorRule{"mask_formula",
                   "must have at most one of tree, materialized_bool, materialized_additive and "
                   "materialized_bits",
                   "join these in one materialized mask",
                   [](D d) { return count_mask_tensors(d) > 1; }},
    DescriptorRule{"mask_formula", "must join materialized_additive to all else by and",
                   "put the other masks into its numbers, -inf where a key is hidden",
                   has_optional_additive},
    DescriptorRule{"score_expression", "must be one CUDA expression if score_modifier is custom",
                   "give a float of float score and int b, h, q and k, such as score + 0.5f * h",
                   [](D d) {
                     return d.score_modifier == ScoreModifier::custom &&
                            !score_expression_fault(d).empty();
                   },
                   score_expression_fault},
    DescriptorRule{"score_expression", "must be empty unless score_modifier is custom",
                   "set score_modifier to custom, or remove score_expression",
                   [](D d) {
                     return d.score_modifier != ScoreModifier::custom &&
                            !d.score_expression.empty();
                   }},
    DescriptorRule{"dtype_bias", "must be fp16, bf16 or fp32", "cast the bias",
                   [](D d) { return !is_half(d.dtype_bias) && d.dtype_bias != DataType::fp32; }},
    DescriptorRule{
        "dtype_bias", "must be fp32 unless score_modifier is additive_bias", "remove dtype_bias",
        [](D d) {
          return d.score_modifier != ScoreModifier::additive_bias && is_half(d.dtype_bias);
        }},
    DescriptorRule{
        "sparsity", "must be token for the token-sparse operations, and for no other",
        "choose the operation that fits the sparsity",
        [](D d) { return is_token_sparse(d.operation) != (d.sparsity == Sparsity::token); }},
    DescriptorRule{"topk", "must not be negative, and 0 unless sparsity is token",
                   "give the keys per query, or remove topk",
                   [](D d) { return d.sparsity == Sparsity::token ? d.topk < 0 : d.topk != 0; }},
    DescriptorRule{"sparsity_block", "must be 16 to 128 if sparsity is block, else 0",
                   "give the block of the sparse layout in tokens, or remove it",
                   [](D d) {
                     return d.sparsity == Sparsity::block
                                ? d.sparsity_block < 16 || d.sparsity_block > 128
                                : d.sparsity_block != 0;
                   }},
    DescriptorRule{"scales_q", "must be none unless q is fp8", "remove scales_q",
                   [](D d) { return d.scales_q != ScaleGrain::none && !is_fp8(d.dtype_q); }},
    DescriptorRule{"scales_kv", "must be none unless the KV cache is fp8", "remove scales_kv",
                   [](D d) { return d.scales_kv != ScaleGrain::none && !is_fp8(d.dtype_kv); }},
    DescriptorRule{"dtype_rope",
                   "must be the type of q, bf16 under an fp8 q, or fp8, for mla_prefill_rope",
                   "store the rope's columns in one of these",
                   [](D d) { return has_rope(d) && !rope_type_fits(d); }},
    DescriptorRule{"dtype_rope", "must be bf16 unless the operation is mla_prefill_rope",
                   "remove dtype_rope: k has all columns",
                   [](D d) { return !has_rope(d) && d.dtype_rope != DataType::bf16; }},
    DescriptorRule{"q_rope_apart", "must be false unless the operation is mla_prefill_rope",
                   "remove q_rope_apart: q has all columns",
                   [](D d) { return !has_rope(d) && d.q_rope_apart; }},
    DescriptorRule{"scales_rope", "must be none unless k_rope is fp8", "remove scales_rope",
                   [](D d) { return d.scales_rope != ScaleGrain::none && !is_fp8(d.dtype_rope); }},
    DescriptorRule{"scales_out", "must be none unless out is fp8", "remove scales_out",
                   [](D d) { return d.scales_out != ScaleGrain::none && !is_fp8(d.dtype_out); }},
    DescriptorRule{"scale_block",
                   "must be a positive multiple of 8 if scales are per_block, else 0",
                   "give the columns that share a scale, or remove scale_block",
                   [](D d) {
                     return has_block_scales(d) ? d.scale_block < 8 || d.scale_block % 8 != 0
                                                : d.scale_block != 0;
                   }},
    DescriptorRule{"kv_layout", "must be ragged for sparse_mla_prefill",
                   "name the layout of kv [s_kv, 1, head_dim_qk]; sparse_mla_decode reads pages",
                   [](D d) {
                     return d.operation == Operation::sparse_mla_prefill &&
                            d.kv_layout != KvLayout::ragged;
                   }},
    DescriptorRule{"num_kv_heads", "must be 1 for the token-sparse operations",
                   "set num_kv_heads to 1: all query heads read one row of latents",
                   [](D d) { return is_token_sparse(d.operation) && d.num_kv_heads > 1; }},
    DescriptorRule{"value_source", "must be prefix_of_k for the token-sparse operations",
                   "set value_source to prefix_of_k",
                   [](D d) {
                     return is_token_sparse(d.operation) &&
                            d.value_source != ValueSource::prefix_of_k;
                   }},
    DescriptorRule{"mask", "must be none for the token-sparse operations",
                   "set mask to none, and leave hidden tokens out of the indices",
                   [](D d) { return is_token_sparse(d.operation) && d.mask != MaskKind::none; }},
    DescriptorRule{"kv_encoding",
                   "must be plain unless head_dim_qk and head_dim_v are its own: 576/512 of "
                   "fp8_656, 512/512 of fp8_584",
                   "set the head dims of the encoding, or remove kv_encoding",
                   [](D d) {
                     return is_encoded(d) &&
                            (d.head_dim_v != 512 ||
                             d.head_dim_qk != (d.kv_encoding == KvEncoding::fp8_656 ? 576 : 512));
                   }},
    DescriptorRule{"dtype_kv", "must be fp8_e4m3 unless kv_encoding is plain",
                   "set dtype_kv to fp8_e4m3, or remove kv_encoding",
                   [](D d) { return is_encoded(d) && d.dtype_kv != DataType::fp8_e4m3; }},
    DescriptorRule{"scales_kv", "must be none unless kv_encoding is plain",
                   "remove scales_kv: encoded tokens hold their scales",
                   [](D d) { return is_encoded(d) && d.scales_kv != ScaleGrain::none; }},
};

}  // namespace

std::span<const DescriptorRule> legality_rules() {
  return legality;
}

}  // namespace attnjit
