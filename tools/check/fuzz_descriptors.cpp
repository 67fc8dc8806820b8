#include "fuzz_descriptors.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "attnjit/mask_formula.hpp"
#include "custom_expressions.hpp"
#include "fuzz_random.hpp"

namespace attnjit::check {
namespace {

using HeadDims = std::pair<int, int>;

int draw_multiple_of_8(FuzzRandom& random, int most) {
  return 8 * random.between(1, most / 8);
}

HeadDims draw_separate_dims(FuzzRandom& random) {
  if (random.one_in(3)) {
    const int qk = draw_multiple_of_8(random, 256);
    return {qk, random.one_in(2) ? qk : draw_multiple_of_8(random, 256)};
  }
  return random.pick<HeadDims>({{64, 64},
                                {80, 80},
                                {96, 96},
                                {112, 112},
                                {128, 128},
                                {128, 128},
                                {192, 128},
                                {256, 256},
                                {512, 512},
                                {64, 128},
                                {128, 64}});
}

HeadDims draw_latent_dims(FuzzRandom& random) {
  if (random.one_in(4)) {
    const int qk = draw_multiple_of_8(random, 576);
    return {qk, draw_multiple_of_8(random, qk)};
  }
  return random.pick<HeadDims>({{576, 512},
                                {576, 512},
                                {576, 512},
                                {576, 512},
                                {320, 256},
                                {192, 128},
                                {448, 384},
                                {576, 576}});
}

void draw_heads(FuzzRandom& random, AttentionDescriptor& descriptor) {
  constexpr int most_q_heads = 128;
  // The cosine distance of few outputs says little: they may cancel.
  constexpr int least_outputs = 256;
  // Kernels of their own serve latent decodes.
  const bool is_latent = random.one_in(descriptor.operation == Operation::decode ? 2 : 4);
  descriptor.value_source = is_latent ? ValueSource::prefix_of_k : ValueSource::separate;
  std::tie(descriptor.head_dim_qk, descriptor.head_dim_v) =
      is_latent ? draw_latent_dims(random) : draw_separate_dims(random);
  const int ratio = random.pick({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 29, 32, 64, 71, 128});
  int kv_heads = is_latent ? random.pick({1, 1, 1, 2}) : random.pick({1, 2, 3, 4, 8});
  kv_heads = std::min(kv_heads, most_q_heads / ratio);
  while (kv_heads * ratio * descriptor.head_dim_v < least_outputs) {
    kv_heads *= 2;
  }
  descriptor.num_kv_heads = kv_heads;
  descriptor.num_q_heads = kv_heads * ratio;
}

void draw_window(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.window_left = random.pick({-1, 0, 1, 31, 63, 64, 127, 128, 500, 4095, 1 << 20});
  descriptor.window_right =
      descriptor.window_left < 0 ? random.pick({0, 1, 5}) : random.pick({-1, 0, 0, 1, 3, 32, 500});
}

template <std::size_t size>
std::string pick_text(FuzzRandom& random, const std::array<std::string_view, size>& texts) {
  return std::string(texts.at(static_cast<std::size_t>(random.between(0, int{size} - 1))));
}

struct DealtMask {
  MaskKind mask;
  DataType dtype_mask = DataType::uint8;
};

constexpr std::array<DealtMask, 11> decode_masks = {
    {{MaskKind::none},
     {MaskKind::causal},
     {MaskKind::causal},
     {MaskKind::causal},
     {MaskKind::sliding_window},
     {MaskKind::sliding_window},
     {MaskKind::sliding_window},
     {MaskKind::materialized_bool},
     {MaskKind::materialized_additive, DataType::bf16},
     {MaskKind::materialized_additive, DataType::fp16},
     {MaskKind::materialized_additive, DataType::fp32}}};

constexpr std::array<DealtMask, 17> prefill_masks = {
    {{MaskKind::none},
     {MaskKind::causal},
     {MaskKind::causal},
     {MaskKind::sliding_window},
     {MaskKind::sliding_window},
     {MaskKind::chunked},
     {MaskKind::chunked_causal},
     {MaskKind::prefix_lm},
     {MaskKind::document},
     {MaskKind::tree},
     {MaskKind::custom},
     {MaskKind::composed},
     {MaskKind::materialized_bool},
     {MaskKind::materialized_bits},
     {MaskKind::materialized_additive, DataType::bf16},
     {MaskKind::materialized_additive, DataType::fp16},
     {MaskKind::materialized_additive, DataType::fp32}}};

// Dealt, not drawn: as many descriptors as there are pairs of an operation and a mask meet all of
// them, and neighbours differ.
void deal_operation_and_mask(std::uint64_t number, AttentionDescriptor& descriptor) {
  constexpr std::uint64_t num_dealt = decode_masks.size() + 2 * prefill_masks.size();
  constexpr std::uint64_t stride = 16;
  static_assert(std::gcd(stride, num_dealt) == 1);
  const std::uint64_t place = number % num_dealt * stride % num_dealt;
  DealtMask dealt = {};
  if (place < decode_masks.size()) {
    descriptor.operation = Operation::decode;
    dealt = decode_masks.at(place);
  } else {
    const std::uint64_t prefill_place = place - decode_masks.size();
    descriptor.operation = prefill_place % 2 == 0 ? Operation::prefill : Operation::prefill_kvcache;
    dealt = prefill_masks.at(prefill_place / 2);
  }
  descriptor.mask = dealt.mask;
  descriptor.dtype_mask = dealt.dtype_mask;
}

std::string draw_formula(FuzzRandom& random) {
  return random.pick<const char*>(
      {"causal and document", "sliding_window or prefix_lm", "causal and custom",
       "sliding_window and chunked", "chunked_causal or custom and sliding_window",
       "causal and (sliding_window or document or prefix_lm)",
       "(causal or document) and (sliding_window or custom) and chunked",
       "causal and materialized_bool or document", "materialized_bits and document and prefix_lm",
       "tree or sliding_window and document", "tree and (document or chunked)",
       "materialized_additive and (causal or document)"});
}

// Of one or of several masks, whatever these take.
void draw_mask_parameters(FuzzRandom& random, AttentionDescriptor& descriptor) {
  if (descriptor.mask == MaskKind::composed) {
    descriptor.mask_formula = draw_formula(random);
  }
  if (has_mask(descriptor, MaskKind::sliding_window)) {
    draw_window(random, descriptor);
  }
  if (has_mask(descriptor, MaskKind::chunked) || has_mask(descriptor, MaskKind::chunked_causal)) {
    descriptor.chunk_size = random.pick({1, 7, 32, 64, 100, 128, 1000});
  }
  if (has_mask(descriptor, MaskKind::custom)) {
    descriptor.mask_expression = pick_text(random, custom_mask_expressions);
  }
  if (descriptor.mask == MaskKind::composed &&
      has_mask(descriptor, MaskKind::materialized_additive)) {
    descriptor.dtype_mask = random.pick({DataType::bf16, DataType::fp16, DataType::fp32});
  }
}

void draw_modifier(FuzzRandom& random, AttentionDescriptor& descriptor) {
  using enum ScoreModifier;
  descriptor.score_modifier =
      random.pick({none, none, softcap, alibi, additive_bias, additive_bias, custom});
  if (descriptor.score_modifier == additive_bias) {
    descriptor.dtype_bias = random.pick({DataType::bf16, DataType::fp16, DataType::fp32});
  } else if (descriptor.score_modifier == custom) {
    descriptor.score_expression = pick_text(random, custom_score_expressions);
  }
}

void draw_pages(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.kv_layout = KvLayout::paged;
  descriptor.kv_layout_tag = random.pick({KvLayoutTag::nhd, KvLayoutTag::hnd});
  descriptor.page_size = random.one_in(4)
                             ? random.between(1, 256)
                             : random.pick({1, 2, 3, 4, 7, 8, 12, 16, 32, 48, 64, 64, 128, 256});
}

void draw_unpaged_layout(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.page_size = 0;
  descriptor.kv_layout = random.pick({KvLayout::ragged, KvLayout::dense});
  descriptor.kv_layout_tag = descriptor.kv_layout == KvLayout::ragged
                                 ? KvLayoutTag::thd
                                 : random.pick({KvLayoutTag::bshd, KvLayoutTag::bhsd});
}

void draw_decode(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.max_seqlen_q = random.one_in(2) ? 1 : random.pick({2, 3, 4, 5, 7, 8, 16, 33, 128});
}

void draw_prefill(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.max_seqlen_q = random.one_in(4) ? random.between(1, 300) : 0;
  draw_modifier(random, descriptor);
  if (random.one_in(5)) {
    descriptor.sparsity = Sparsity::block;
    descriptor.sparsity_block =
        random.one_in(3) ? random.between(16, 128) : random.pick({16, 32, 48, 64, 128});
  }
}

// Of a prefill, which may read and write fp8. What is stored is dealt, as masks are: of four
// descriptors two have q, k and v of 16 bits, one an fp8 k and v, one an fp8 q too. Of as many as
// meet all masks, those of each operation meet all grains.
void deal_fp8(FuzzRandom& random, std::uint64_t number, AttentionDescriptor& descriptor) {
  using enum DataType;
  using enum ScaleGrain;
  constexpr std::array grains = {none, per_tensor, per_head, per_token, per_block};
  descriptor.dtype_out = random.pick({descriptor.dtype_q, bf16, fp16, fp8_e4m3, fp8_e5m2});
  if (size_bytes(descriptor.dtype_out) == 1 && random.one_in(2)) {
    descriptor.scales_out = per_tensor;
  }
  if (number % 4 < 2) {
    return;
  }
  descriptor.dtype_kv = random.pick({fp8_e4m3, fp8_e4m3, fp8_e5m2});
  descriptor.scales_kv = grains.at(number / 9 % grains.size());
  descriptor.dtype_q = bf16;
  if (number % 4 == 3) {
    descriptor.dtype_q = fp8_e4m3;
    descriptor.scales_q = grains.at(number / 5 % grains.size());
  }
  if (descriptor.scales_q == per_block || descriptor.scales_kv == per_block) {
    descriptor.scale_block = random.pick({8, 16, 40, 64, 64, 128, 128, 256, 600});
  }
}

}  // namespace

AttentionDescriptor make_fuzz_descriptor(std::uint64_t seed, std::uint64_t number) {
  FuzzRandom random(seed, number, FuzzSubject::descriptor);
  AttentionDescriptor descriptor;
  deal_operation_and_mask(number + seed, descriptor);
  descriptor.dtype_q = random.pick({DataType::bf16, DataType::bf16, DataType::fp16});
  descriptor.dtype_kv = descriptor.dtype_out = descriptor.dtype_q;
  draw_heads(random, descriptor);
  draw_mask_parameters(random, descriptor);
  descriptor.has_sinks = random.one_in(4);
  descriptor.batch_invariant = random.one_in(4);
  descriptor.returns_lse = !random.one_in(5);
  if (descriptor.operation == Operation::prefill) {
    draw_unpaged_layout(random, descriptor);
  } else {
    draw_pages(random, descriptor);
  }
  if (descriptor.operation == Operation::decode) {
    draw_decode(random, descriptor);
  } else {
    draw_prefill(random, descriptor);
  }
  if (descriptor.operation != Operation::decode) {
    deal_fp8(random, number + seed, descriptor);
  }
  if (descriptor.dtype_out == DataType::fp16 && descriptor.score_modifier == ScoreModifier::alibi) {
    descriptor.has_sinks = false;  // fp16 holds nothing of far keys beside a sink
  }
  return descriptor;
}

}  // namespace attnjit::check
