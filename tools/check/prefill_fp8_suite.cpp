#include "prefill_fp8_suite.hpp"

#include <array>
#include <string>

namespace attnjit::check {
namespace {

using Suite = std::vector<PrefillSuiteCase>;

constexpr DataType bf16 = DataType::bf16;
constexpr DataType fp16 = DataType::fp16;
constexpr DataType e4m3 = DataType::fp8_e4m3;
constexpr DataType e5m2 = DataType::fp8_e5m2;
constexpr std::array grains = {ScaleGrain::none, ScaleGrain::per_tensor, ScaleGrain::per_head,
                               ScaleGrain::per_token, ScaleGrain::per_block};

AttentionDescriptor with_types(AttentionDescriptor descriptor, DataType q, DataType kv,
                               DataType out) {
  descriptor.dtype_q = q;
  descriptor.dtype_kv = kv;
  descriptor.dtype_out = out;
  return descriptor;
}

// Blocks of a width that does not divide the columns, too.
AttentionDescriptor with_scales(AttentionDescriptor descriptor, ScaleGrain q, ScaleGrain kv,
                                int scale_block = 64) {
  descriptor.scales_q = q;
  descriptor.scales_kv = kv;
  const bool has_blocks = q == ScaleGrain::per_block || kv == ScaleGrain::per_block;
  descriptor.scale_block = has_blocks ? scale_block : 0;
  return descriptor;
}

AttentionDescriptor latent(AttentionDescriptor descriptor) {
  descriptor.value_source = ValueSource::prefix_of_k;
  descriptor.head_dim_qk = 576;
  descriptor.head_dim_v = 512;
  return descriptor;
}

std::vector<AttentionDescriptor> shapes() {
  AttentionDescriptor small_pages = paged_descriptor(8, 2, 72);
  small_pages.page_size = 3;
  AttentionDescriptor heads_first = paged_descriptor(12, 4, 128);
  heads_first.page_size = 16;
  heads_first.kv_layout_tag = KvLayoutTag::hnd;
  AttentionDescriptor dense = ragged_descriptor(4, 4, 256);
  dense.kv_layout = KvLayout::dense;
  dense.kv_layout_tag = KvLayoutTag::bhsd;
  AttentionDescriptor unequal = ragged_descriptor(6, 2, 192);
  unequal.head_dim_v = 128;
  return {ragged_descriptor(12, 4, 128),
          paged_descriptor(12, 4, 128),
          small_pages,
          heads_first,
          dense,
          unequal,
          latent(paged_descriptor(16, 1, 576))};
}

void add_grains(Suite& suite) {
  for (const AttentionDescriptor& shape : shapes()) {
    for (const ScaleGrain grain : grains) {
      const std::string name = std::string(to_string(grain));
      add_prefill_case(suite, "prefill, bf16 q, e4m3 k and v, scales " + name,
                       with_scales(with_types(shape, bf16, e4m3, bf16), ScaleGrain::none, grain),
                       mixed_lengths());
      PrefillCase& all = add_prefill_case(
          suite, "prefill in e4m3, scales " + name,
          with_scales(with_types(shape, e4m3, e4m3, bf16), grain, grain, 48), mixed_lengths());
      all.scales_share_heads = true;
    }
  }
}

void add_types(Suite& suite) {
  for (const AttentionDescriptor& shape :
       {ragged_descriptor(12, 4, 128), paged_descriptor(8, 2, 80)}) {
    for (const DataType q : {bf16, e4m3}) {
      add_prefill_case(
          suite, "prefill, e5m2 k and v",
          with_scales(with_types(shape, q, e5m2, bf16), ScaleGrain::none, ScaleGrain::per_head),
          mixed_lengths());
      for (const DataType out : {fp16, e4m3, e5m2}) {
        AttentionDescriptor descriptor = with_types(shape, q, q, out);
        add_prefill_case(suite, "prefill, out of another type than q", descriptor, mixed_lengths());
        if (size_bytes(out) == 1) {
          descriptor.scales_out = ScaleGrain::per_tensor;
          PrefillCase& scaled =
              add_prefill_case(suite, "prefill, fp8 out with a scale", descriptor, mixed_lengths());
          scaled.row_padding = 8;
        }
      }
    }
    add_prefill_case(suite, "prefill, out of another type than q",
                     with_types(shape, fp16, fp16, bf16), mixed_lengths());
  }
}

// Grains of q and of the keys that differ; keys far from 1; scales of the softmax.
void add_mixtures(Suite& suite) {
  const AttentionDescriptor shape = with_types(paged_descriptor(12, 4, 128), e4m3, e4m3, bf16);
  for (const ScaleGrain q : grains) {
    for (const ScaleGrain kv : grains) {
      add_prefill_case(suite, "prefill in e4m3, grains of q and k", with_scales(shape, q, kv),
                       mixed_lengths());
    }
  }
  for (const double scale : {-0.4, 1e-20, 0.0}) {
    for (const ScaleGrain grain : {ScaleGrain::per_head, ScaleGrain::per_token}) {
      add_prefill_case(suite, "prefill in e4m3, scale negative, tiny or 0",
                       with_scales(shape, grain, grain), mixed_lengths())
          .softmax_scale = scale;
    }
  }
  add_prefill_case(suite, "prefill in e4m3, keys and values below its normal numbers",
                   with_scales(shape, ScaleGrain::none, ScaleGrain::none), mixed_lengths())
      .kv_scale = 0.003;
}

void add_masks(Suite& suite) {
  const auto add = [&](const std::string& group, const AttentionDescriptor& descriptor) {
    const ScaleGrain grain = ScaleGrain::per_token;
    add_prefill_case(suite, group,
                     with_scales(with_types(descriptor, e4m3, e4m3, bf16), grain, grain),
                     {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}, {128, 63}});
    add_prefill_case(suite, group,
                     with_scales(with_types(descriptor, bf16, e4m3, bf16), ScaleGrain::none,
                                 ScaleGrain::per_block),
                     {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}, {128, 63}});
  };
  for (const AttentionDescriptor& shape :
       {ragged_descriptor(12, 4, 128), paged_descriptor(12, 4, 128)}) {
    add("prefill of fp8, no mask", with_mask(shape, MaskKind::none));
    add("prefill of fp8, bool mask", with_mask(shape, MaskKind::materialized_bool));
    add("prefill of fp8, document mask", with_mask(shape, MaskKind::document));
    AttentionDescriptor descriptor = with_mask(shape, MaskKind::sliding_window);
    descriptor.window_left = 70;
    descriptor.window_right = 0;
    descriptor.has_sinks = true;
    add("prefill of fp8, window and sinks", descriptor);
    descriptor = shape;
    descriptor.score_modifier = ScoreModifier::alibi;
    add("prefill of fp8, ALiBi", descriptor);
    descriptor.score_modifier = ScoreModifier::softcap;
    add("prefill of fp8, softcap", descriptor);
    descriptor.score_modifier = ScoreModifier::none;
    descriptor.sparsity = Sparsity::block;
    descriptor.sparsity_block = 64;
    add("prefill of fp8, block-sparse", descriptor);
  }
}

void add_permutations(Suite& suite) {
  for (const ScaleGrain grain : {ScaleGrain::per_token, ScaleGrain::per_block}) {
    for (const AttentionDescriptor& shape :
         {paged_descriptor(12, 4, 128), latent(paged_descriptor(16, 1, 576))}) {
      add_prefill_case(suite, "prefill of fp8, permuted pages, equal to the bit",
                       with_scales(with_types(shape, bf16, e4m3, bf16), ScaleGrain::none, grain),
                       mixed_lengths());
      suite.back().is_permutation = true;
    }
  }
}

}  // namespace

std::vector<PrefillSuiteCase> prefill_fp8_suite() {
  Suite suite;
  add_grains(suite);
  add_types(suite);
  add_mixtures(suite);
  add_masks(suite);
  add_permutations(suite);
  return suite;
}

}  // namespace attnjit::check
