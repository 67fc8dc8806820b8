// What can be wrong about a descriptor, each way written apart from the rules that refuse it.
#include "illegal_descriptors.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/mask_formula.hpp"
#include "fuzz_descriptors.hpp"
#include "fuzz_random.hpp"
#include "refusal.hpp"

namespace attnjit::check {
namespace {

using Descriptor = AttentionDescriptor;

bool is_decode(const Descriptor& d) {
  return d.operation == Operation::decode;
}

bool is_paged(const Descriptor& d) {
  return d.kv_layout == KvLayout::paged;
}

// Other than `type`; of those that a kernel could compute with, or of none.
DataType draw_other_type(FuzzRandom& random, DataType type) {
  using enum DataType;
  DataType other = type;
  while (other == type) {
    other = random.pick({bf16, fp16, fp32, fp8_e4m3, fp8_e5m2, uint8, int32, int64});
  }
  return other;
}

ScaleGrain draw_scales(FuzzRandom& random) {
  return random.pick(
      {ScaleGrain::per_tensor, ScaleGrain::per_head, ScaleGrain::per_token, ScaleGrain::per_block});
}

int draw_bad_head_dim(FuzzRandom& random, int legal) {
  return random.pick({0, -8, -legal, legal + 1, legal + 4, 1024, 1 << 30});
}

bool is_fp8(DataType type) {
  return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;
}

// Of decode e4m3 is none, of prefill it is one.
void spoil_dtype_q(FuzzRandom& random, Descriptor& d) {
  using enum DataType;
  d.dtype_q =
      random.pick({fp32, is_decode(d) ? fp8_e4m3 : fp8_e5m2, fp8_e5m2, uint8, int32, int64});
}

// Of prefill fp8 goes with a q of bf16 or fp8. Scales go with what had them.
void spoil_dtype_kv(FuzzRandom& random, Descriptor& d) {
  const bool may_be_fp8 = !is_decode(d) && d.dtype_q != DataType::fp16;
  do {
    d.dtype_kv = draw_other_type(random, d.dtype_q);
  } while (may_be_fp8 && is_fp8(d.dtype_kv));
  d.scales_kv = ScaleGrain::none;
  d.scale_block = d.scales_q == ScaleGrain::per_block ? d.scale_block : 0;
}

// Of prefill anything that can be computed with is one.
void spoil_dtype_out(FuzzRandom& random, Descriptor& d) {
  using enum DataType;
  d.dtype_out =
      is_decode(d) ? draw_other_type(random, d.dtype_q) : random.pick({fp32, uint8, int32, int64});
}

void spoil_dtype_rope(FuzzRandom& random, Descriptor& d) {
  d.dtype_rope = draw_other_type(random, DataType::bf16);
}

void spoil_q_rope_apart(FuzzRandom&, Descriptor& d) {
  d.q_rope_apart = true;
}

void spoil_head_dim_qk(FuzzRandom& random, Descriptor& d) {
  d.head_dim_qk = draw_bad_head_dim(random, d.head_dim_qk);
}

void spoil_head_dim_v(FuzzRandom& random, Descriptor& d) {
  d.head_dim_v = draw_bad_head_dim(random, d.head_dim_v);
}

// A v that is a prefix of k cannot be wider.
void spoil_value_source(FuzzRandom& random, Descriptor& d) {
  d.value_source = ValueSource::prefix_of_k;
  d.head_dim_v = d.head_dim_qk + 8 * random.between(1, 8);
}

void spoil_num_q_heads(FuzzRandom& random, Descriptor& d) {
  d.num_q_heads = d.num_kv_heads > 1 && random.one_in(2)
                      ? d.num_q_heads + random.between(1, d.num_kv_heads - 1)
                      : random.pick({0, -1, -d.num_q_heads, 1025, 1 << 20});
}

void spoil_num_kv_heads(FuzzRandom& random, Descriptor& d) {
  d.num_kv_heads = random.pick({0, -1, -d.num_kv_heads, d.num_q_heads + 1, 1 << 20});
}

void spoil_max_seqlen_q(FuzzRandom& random, Descriptor& d) {
  d.max_seqlen_q = is_decode(d) ? random.pick({0, -1, 129, 4096}) : -random.between(1, 4096);
}

void spoil_kv_layout(FuzzRandom& random, Descriptor& d) {
  d.kv_layout = is_paged(d) ? random.pick({KvLayout::ragged, KvLayout::dense}) : KvLayout::paged;
}

void spoil_kv_layout_tag(FuzzRandom& random, Descriptor& d) {
  using enum KvLayoutTag;
  switch (d.kv_layout) {
    case KvLayout::paged:
      d.kv_layout_tag = random.pick({thd, bshd, bhsd});
      break;
    case KvLayout::ragged:
      d.kv_layout_tag = random.pick({nhd, hnd, bshd, bhsd});
      break;
    case KvLayout::dense:
      d.kv_layout_tag = random.pick({nhd, hnd, thd});
      break;
  }
}

void spoil_page_size(FuzzRandom& random, Descriptor& d) {
  d.page_size = is_paged(d) ? random.pick({0, -1, 257, 1 << 20}) : random.between(1, 256);
}

// A mask with all that it needs, and nothing that is wrong but itself; all are right for prefill,
// but not each with every other.
void spoil_mask(FuzzRandom& random, Descriptor& d) {
  using enum MaskKind;
  d.mask = is_decode(d) ? random.pick({chunked, chunked_causal, prefix_lm, document, tree,
                                       materialized_bits, custom, composed})
                        : composed;
  d.mask_formula = "";
  if (d.mask == composed) {
    d.mask_formula = is_decode(d) ? "causal and document" : "tree and materialized_bool";
  }
  d.mask_expression = d.mask == custom ? "q > k" : "";
  const bool is_chunked = d.mask == chunked || d.mask == chunked_causal;
  d.chunk_size = is_chunked ? random.between(1, 512) : 0;
  d.window_left = d.window_right = -1;
  d.dtype_mask = DataType::uint8;
}

// An expression that is none, or that nothing asks for.
std::string draw_bad_expression(FuzzRandom& random, bool is_needed) {
  return is_needed ? random.pick<const char*>({"", "q > k)", "true; }", "1\n#line 1", "'q'", "{"})
                   : "q > k";
}

void spoil_mask_expression(FuzzRandom& random, Descriptor& d) {
  d.mask_expression = draw_bad_expression(random, has_mask(d, MaskKind::custom));
}

void spoil_score_expression(FuzzRandom& random, Descriptor& d) {
  d.score_expression = draw_bad_expression(random, d.score_modifier == ScoreModifier::custom);
}

void spoil_mask_formula(FuzzRandom& random, Descriptor& d) {
  d.mask_formula =
      d.mask == MaskKind::composed
          ? random.pick<const char*>({"", "causal and", "causal, document", "(causal", "all"})
          : "causal and document";
}

void spoil_dtype_bias(FuzzRandom& random, Descriptor& d) {
  using enum DataType;
  d.dtype_bias = d.score_modifier == ScoreModifier::additive_bias
                     ? random.pick({fp8_e4m3, fp8_e5m2, uint8, int32, int64})
                     : random.pick({bf16, fp16, uint8});
}

void spoil_dtype_mask(FuzzRandom& random, Descriptor& d) {
  using enum DataType;
  d.dtype_mask = has_mask(d, MaskKind::materialized_additive)
                     ? random.pick({fp8_e4m3, fp8_e5m2, uint8, int32, int64})
                     : random.pick({bf16, fp16, fp32, int32});
}

void spoil_window_left(FuzzRandom& random, Descriptor& d) {
  d.window_left = has_mask(d, MaskKind::sliding_window) ? -random.between(2, 4096)
                                                        : random.pick({-2, 0, 127, 4095});
}

void spoil_window_right(FuzzRandom& random, Descriptor& d) {
  d.window_right = has_mask(d, MaskKind::sliding_window) ? -random.between(2, 4096)
                                                         : random.pick({-2, 0, 127, 4095});
}

void spoil_window(FuzzRandom&, Descriptor& d) {
  d.mask = MaskKind::sliding_window;
  d.window_left = d.window_right = -1;
}

void spoil_chunk_size(FuzzRandom& random, Descriptor& d) {
  const bool is_chunked = has_mask(d, MaskKind::chunked) || has_mask(d, MaskKind::chunked_causal);
  d.chunk_size = is_chunked ? -random.between(0, 128) : random.pick({-1, 1, 128, 8192});
}

// What decode does not have, or what needs an expression that is not there.
void spoil_score_modifier(FuzzRandom& random, Descriptor& d) {
  using enum ScoreModifier;
  d.score_modifier = is_decode(d) ? random.pick({softcap, alibi, additive_bias, custom}) : custom;
  d.dtype_bias = DataType::fp32;
  d.score_expression = d.score_modifier == custom && is_decode(d) ? "score" : "";
}

// Token-sparse, which is for other operations, or blocks, which are for prefill.
void spoil_sparsity(FuzzRandom& random, Descriptor& d) {
  d.sparsity = is_decode(d) ? random.pick({Sparsity::block, Sparsity::token}) : Sparsity::token;
  d.sparsity_block = d.sparsity == Sparsity::block ? random.between(16, 128) : 0;
}

void spoil_sparsity_block(FuzzRandom& random, Descriptor& d) {
  d.sparsity_block =
      d.sparsity == Sparsity::block ? random.pick({0, -16, 15, 129}) : random.between(16, 128);
}

void spoil_topk(FuzzRandom& random, Descriptor& d) {
  d.topk = random.pick({-1, 1, 64, 2048});
}

// Of 16 bits, which have none.
void spoil_scales_q(FuzzRandom& random, Descriptor& d) {
  d.dtype_q = is_fp8(d.dtype_q) ? DataType::bf16 : d.dtype_q;
  d.scales_q = draw_scales(random);
}

void spoil_scales_kv(FuzzRandom& random, Descriptor& d) {
  d.dtype_kv = is_fp8(d.dtype_kv) ? DataType::bf16 : d.dtype_kv;
  d.scales_kv = draw_scales(random);
}

void spoil_scales_rope(FuzzRandom& random, Descriptor& d) {
  d.scales_rope = draw_scales(random);
}

// An fp8 output may have one for all of it.
void spoil_scales_out(FuzzRandom& random, Descriptor& d) {
  using enum ScaleGrain;
  d.scales_out =
      is_fp8(d.dtype_out) ? random.pick({per_head, per_token, per_block}) : draw_scales(random);
}

void spoil_scale_block(FuzzRandom& random, Descriptor& d) {
  d.scale_block =
      d.scale_block > 0 ? random.pick({0, -8, -64, 4, 12, 100}) : random.pick({-8, 1, 8, 64, 128});
}

// Token-sparse attention without its sparsity.
void spoil_operation(FuzzRandom& random, Descriptor& d) {
  d.operation = random.pick({Operation::sparse_mla_decode, Operation::sparse_mla_prefill});
}

// Encoded tokens, which no operation that is drawn reads.
void spoil_kv_encoding(FuzzRandom& random, Descriptor& d) {
  d.dtype_kv = DataType::fp8_e4m3;
  d.kv_encoding = random.pick({KvEncoding::fp8_656, KvEncoding::fp8_584});
}

// C++ lets any integer be cast to an enumeration.
template <auto member>
void cast(FuzzRandom& random, Descriptor& d) {
  using Enum = std::remove_reference_t<decltype(d.*member)>;
  d.*member = static_cast<Enum>(random.pick({-1, 20, 255, 1 << 20}));
}

struct Spoiler {
  void (*spoil)(FuzzRandom&, Descriptor&);
  std::array<std::string_view, 4> fields;  // that it changes; a rule about one of them is broken
};

constexpr std::array spoilers = {
    Spoiler{spoil_dtype_q, {"dtype_q"}},
    Spoiler{spoil_dtype_kv, {"dtype_kv", "scales_kv", "scale_block"}},
    Spoiler{spoil_dtype_out, {"dtype_out"}},
    Spoiler{spoil_head_dim_qk, {"head_dim_qk"}},
    Spoiler{spoil_head_dim_v, {"head_dim_v"}},
    Spoiler{spoil_value_source, {"value_source", "head_dim_v"}},
    Spoiler{spoil_num_q_heads, {"num_q_heads"}},
    Spoiler{spoil_num_kv_heads, {"num_kv_heads"}},
    Spoiler{spoil_max_seqlen_q, {"max_seqlen_q"}},
    Spoiler{spoil_kv_layout, {"kv_layout", "kv_layout_tag", "page_size"}},
    Spoiler{spoil_kv_layout_tag, {"kv_layout_tag"}},
    Spoiler{spoil_page_size, {"page_size"}},
    Spoiler{spoil_mask, {"mask", "chunk_size", "mask_formula", "mask_expression"}},
    Spoiler{spoil_dtype_mask, {"dtype_mask"}},
    Spoiler{spoil_window_left, {"window_left"}},
    Spoiler{spoil_window_right, {"window_right"}},
    Spoiler{spoil_window, {"mask", "window_left", "window_right"}},
    Spoiler{spoil_chunk_size, {"chunk_size"}},
    Spoiler{spoil_score_modifier, {"score_modifier", "score_expression", "dtype_bias"}},
    Spoiler{spoil_mask_expression, {"mask_expression"}},
    Spoiler{spoil_mask_formula, {"mask_formula"}},
    Spoiler{spoil_score_expression, {"score_expression"}},
    Spoiler{spoil_dtype_bias, {"dtype_bias"}},
    Spoiler{spoil_sparsity, {"sparsity", "sparsity_block"}},
    Spoiler{spoil_sparsity_block, {"sparsity_block"}},
    Spoiler{spoil_topk, {"topk"}},
    Spoiler{spoil_dtype_rope, {"dtype_rope"}},
    Spoiler{spoil_q_rope_apart, {"q_rope_apart"}},
    Spoiler{spoil_scales_q, {"scales_q", "dtype_q"}},
    Spoiler{spoil_scales_kv, {"scales_kv", "dtype_kv"}},
    Spoiler{spoil_scales_rope, {"scales_rope"}},
    Spoiler{spoil_scales_out, {"scales_out"}},
    Spoiler{spoil_scale_block, {"scale_block"}},
    Spoiler{spoil_operation, {"operation", "sparsity"}},
    Spoiler{spoil_kv_encoding, {"kv_encoding", "dtype_kv", "scales_kv"}},
    Spoiler{cast<&Descriptor::operation>, {"operation"}},
    Spoiler{cast<&Descriptor::dtype_q>, {"dtype_q"}},
    Spoiler{cast<&Descriptor::kv_layout>, {"kv_layout"}},
    Spoiler{cast<&Descriptor::mask>, {"mask"}},
    Spoiler{cast<&Descriptor::score_modifier>, {"score_modifier"}},
    Spoiler{cast<&Descriptor::scales_kv>, {"scales_kv"}},
};

bool is_among(const std::vector<std::string>& fields, std::string_view field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

// One that changes none of `fields`: two changes of one field may come to nothing.
const Spoiler& draw_spoiler(FuzzRandom& random, const std::vector<std::string>& fields) {
  while (true) {
    const int place = random.between(0, static_cast<int>(spoilers.size()) - 1);
    const Spoiler& spoiler = spoilers.at(static_cast<std::size_t>(place));
    if (std::none_of(spoiler.fields.begin(), spoiler.fields.end(),
                     [&](std::string_view field) { return is_among(fields, field); })) {
      return spoiler;
    }
  }
}

}  // namespace

IllegalDescriptor make_illegal_descriptor(std::uint64_t seed, std::uint64_t index) {
  FuzzRandom random(seed, index, FuzzSubject::illegal_descriptor);
  IllegalDescriptor illegal = {make_fuzz_descriptor(random.bits(), index), {}};
  const int changes = random.one_in(3) ? 2 : 1;
  for (int i = 0; i < changes; ++i) {
    const Spoiler& spoiler = draw_spoiler(random, illegal.fields);
    spoiler.spoil(random, illegal.descriptor);
    for (const std::string_view field : spoiler.fields) {
      if (!field.empty()) {
        illegal.fields.emplace_back(field);
      }
    }
  }
  return illegal;
}

std::string describe(const IllegalDescriptor& illegal) {
  std::string text;
  for_each_field(illegal.descriptor, [&](std::string_view name, const auto& member) {
    if (!is_among(illegal.fields, name)) {
      return;
    }
    text += text.empty() ? "" : ", ";
    if constexpr (std::is_enum_v<std::decay_t<decltype(member)>>) {
      const std::string_view value = to_string(member);
      text += value.empty() ? fmt::format("{} {}", name, static_cast<int>(member))
                            : fmt::format("{} {}", name, value);
    } else {
      text += fmt::format("{} {}", name, member);
    }
  });
  return text;
}

CheckResult check_refusal(const IllegalDescriptor& illegal) {
  CheckResult result;
  try {
    validate(illegal.descriptor);
    result.failure = "accepted";
  } catch (const DescriptorError& error) {
    result.failure = find_fault(error.violations(), illegal.fields);
  }
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::check
