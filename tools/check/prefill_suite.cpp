#include "prefill_suite.hpp"

#include <array>
#include <iterator>

#include "prefill_composition_suite.hpp"
#include "prefill_fp8_suite.hpp"
#include "prefill_mask_suite.hpp"

namespace attnjit::check {
namespace {

using Suite = std::vector<PrefillSuiteCase>;

AttentionDescriptor with_type(AttentionDescriptor descriptor, DataType type) {
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = type;
  return descriptor;
}

AttentionDescriptor with_dims(AttentionDescriptor descriptor, int head_dim_qk, int head_dim_v) {
  descriptor.head_dim_qk = head_dim_qk;
  descriptor.head_dim_v = head_dim_v;
  return descriptor;
}

AttentionDescriptor with_pages(AttentionDescriptor descriptor, int page_size, KvLayoutTag tag) {
  descriptor.page_size = page_size;
  descriptor.kv_layout_tag = tag;
  return descriptor;
}

AttentionDescriptor dense_descriptor(KvLayoutTag tag) {
  AttentionDescriptor descriptor = ragged_descriptor(12, 4, 128);
  descriptor.kv_layout = KvLayout::dense;
  descriptor.kv_layout_tag = tag;
  return descriptor;
}

// V is the first columns of K.
AttentionDescriptor latent(AttentionDescriptor descriptor, int head_dim_qk, int head_dim_v) {
  descriptor.value_source = ValueSource::prefix_of_k;
  return with_dims(descriptor, head_dim_qk, head_dim_v);
}

void add_head_dims(Suite& suite) {
  constexpr std::array<std::pair<int, int>, 15> dims = {{{8, 8},
                                                         {64, 64},
                                                         {72, 72},
                                                         {80, 80},
                                                         {96, 96},
                                                         {112, 112},
                                                         {128, 128},
                                                         {192, 128},
                                                         {192, 192},
                                                         {224, 224},
                                                         {256, 256},
                                                         {512, 512},
                                                         {64, 128},
                                                         {128, 64},
                                                         {136, 56}}};
  for (const auto& [qk, v] : dims) {
    const AttentionDescriptor descriptor = with_dims(ragged_descriptor(6, 2, qk), qk, v);
    add_prefill_case(suite, "prefill head dims, bf16", descriptor, mixed_lengths());
    if (qk % 64 == 0 && v % 64 == 0 && qk <= 256) {
      add_prefill_case(suite, "prefill head dims, fp16", with_type(descriptor, DataType::fp16),
                       mixed_lengths());
    }
  }
  const std::string group = "prefill, v a prefix of k";
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{{576, 512}, {320, 256}, {192, 128}}) {
    add_prefill_case(suite, group, latent(paged_descriptor(16, 1, qk), qk, v), mixed_lengths());
  }
  add_prefill_case(suite, group, latent(ragged_descriptor(3, 1, 576), 576, 512), mixed_lengths());
  add_prefill_case(suite, group,
                   with_type(latent(paged_descriptor(4, 2, 128), 128, 128), DataType::fp16),
                   mixed_lengths());
}

void add_head_ratios(Suite& suite) {
  for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 29, 71}) {
    const int kv_heads = ratio <= 8 ? 3 : 1;
    add_prefill_case(suite, "prefill head ratios",
                     ragged_descriptor(ratio * kv_heads, kv_heads, 64), mixed_lengths());
  }
}

void add_lengths(Suite& suite) {
  constexpr std::array lengths = {0, 1, 63, 64, 65, 127, 128, 129, 300, 1000};
  for (const AttentionDescriptor& descriptor :
       {ragged_descriptor(12, 4, 128), with_mask(ragged_descriptor(12, 4, 128), MaskKind::none),
        paged_descriptor(12, 4, 128)}) {
    for (const int queries : lengths) {
      Lengths batch;
      for (const int keys : lengths) {
        batch.emplace_back(queries, keys);
      }
      add_prefill_case(suite, "prefill lengths", descriptor, batch);
    }
  }
}

void add_layouts(Suite& suite) {
  const Lengths equal = {{65, 130}, {65, 130}, {65, 130}};
  const Lengths unequal = {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}, {128, 63}};
  for (const AttentionDescriptor& descriptor :
       {ragged_descriptor(12, 4, 128), dense_descriptor(KvLayoutTag::bshd),
        dense_descriptor(KvLayoutTag::bhsd), paged_descriptor(12, 4, 128)}) {
    for (const QueryLayout layout : {QueryLayout::ragged, QueryLayout::bshd, QueryLayout::bhsd}) {
      const std::string group = "prefill layouts, q " + std::string(to_string(layout)) + ", k " +
                                std::string(to_string(descriptor.kv_layout_tag));
      for (const Lengths& lengths : {equal, unequal}) {
        for (const int unowned_rows : {0, 5}) {
          for (const int row_padding : {0, 8}) {
            PrefillCase& added = add_prefill_case(suite, group, descriptor, lengths);
            added.query_layout = layout;
            added.unowned_rows = unowned_rows;
            added.row_padding = row_padding;
          }
        }
      }
    }
  }
  for (const int rows_before : {0, 63, 300}) {
    add_prefill_case(suite, "prefill, rows before the first request", ragged_descriptor(12, 4, 128),
                     unequal)
        .rows_before = rows_before;
  }
}

void add_pages(Suite& suite) {
  for (const int page_size : {1, 3, 16, 64, 128, 256}) {
    for (const KvLayoutTag tag : {KvLayoutTag::nhd, KvLayoutTag::hnd}) {
      const AttentionDescriptor descriptor =
          with_pages(paged_descriptor(12, 4, 128), page_size, tag);
      for (const CacheArrangement arrangement :
           {CacheArrangement::pool, CacheArrangement::per_request, CacheArrangement::layered}) {
        add_prefill_case(suite, "prefill, page size " + std::to_string(page_size), descriptor,
                         mixed_lengths())
            .arrangement = arrangement;
      }
    }
  }
}

void add_permutations(Suite& suite) {
  for (const AttentionDescriptor& descriptor :
       {paged_descriptor(12, 4, 128), with_pages(paged_descriptor(12, 4, 128), 3, KvLayoutTag::nhd),
        with_pages(paged_descriptor(12, 4, 128), 16, KvLayoutTag::hnd),
        latent(paged_descriptor(16, 1, 576), 576, 512)}) {
    add_prefill_case(suite, "prefill, permuted pages, equal to the bit", descriptor,
                     mixed_lengths());
    suite.back().is_permutation = true;
  }
}

void add_batches(Suite& suite) {
  Lengths tiny;
  Lengths sparse;
  for (int b = 0; b < 300; ++b) {
    tiny.emplace_back(b * 7 % 6, b * 5 % 11);
    sparse.emplace_back(b % 50 == 49 ? 130 : 0, b % 3 * 40);
  }
  for (const AttentionDescriptor& descriptor :
       {ragged_descriptor(12, 4, 128), paged_descriptor(12, 4, 128)}) {
    add_prefill_case(suite, "prefill, many requests", descriptor, tiny);
    add_prefill_case(suite, "prefill, many requests", descriptor, sparse);
    add_prefill_case(suite, "prefill, nothing to compute", descriptor, {{0, 0}, {0, 100}});
    add_prefill_case(suite, "prefill, nothing to see", descriptor, {{100, 0}, {1, 0}});
  }
  // More row tiles than a grid has in its second and third dimension, even of many rows.
  for (const MaskKind mask : {MaskKind::causal, MaskKind::none}) {
    const AttentionDescriptor descriptor = with_mask(ragged_descriptor(1, 1, 64), mask);
    add_prefill_case(suite, "prefill, 70000 query rows", descriptor, {{3, 3}, {70000, 40}});
    PrefillCase& dense =
        add_prefill_case(suite, "prefill, 70000 query rows", descriptor, {{70000, 40}});
    dense.query_layout = QueryLayout::bshd;
  }
  AttentionDescriptor without_lse = ragged_descriptor(12, 4, 128);
  without_lse.returns_lse = false;
  add_prefill_case(suite, "prefill without LSE", without_lse, mixed_lengths());
}

void add_scales(Suite& suite) {
  for (const AttentionDescriptor& descriptor :
       {ragged_descriptor(12, 4, 128), paged_descriptor(12, 4, 128)}) {
    for (const double scale : {1.352337788608801, -0.4, 1e-20, 0.0}) {
      add_prefill_case(suite, "prefill, scale not a power of two, negative, tiny or 0", descriptor,
                       mixed_lengths())
          .softmax_scale = scale;
    }
  }
}

}  // namespace

Lengths mixed_lengths() {
  return {{129, 129}, {0, 65},     {64, 300}, {1, 127}, {63, 0},
          {128, 63},  {127, 1000}, {65, 1},   {300, 64}};
}

AttentionDescriptor ragged_descriptor(int num_q_heads, int num_kv_heads, int head_dim) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = num_kv_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout = KvLayout::ragged;
  descriptor.kv_layout_tag = KvLayoutTag::thd;
  descriptor.page_size = 0;
  return descriptor;
}

AttentionDescriptor paged_descriptor(int num_q_heads, int num_kv_heads, int head_dim) {
  AttentionDescriptor descriptor = ragged_descriptor(num_q_heads, num_kv_heads, head_dim);
  descriptor.operation = Operation::prefill_kvcache;
  descriptor.kv_layout = KvLayout::paged;
  return with_pages(descriptor, 64, KvLayoutTag::nhd);
}

AttentionDescriptor with_mask(AttentionDescriptor descriptor, MaskKind mask) {
  descriptor.mask = mask;
  return descriptor;
}

PrefillCase& add_prefill_case(std::vector<PrefillSuiteCase>& suite, const std::string& group,
                              const AttentionDescriptor& descriptor, const Lengths& lengths) {
  PrefillCase prefill_case;
  prefill_case.descriptor = descriptor;
  for (const auto& [queries, keys] : lengths) {
    prefill_case.q_lens.push_back(queries);
    prefill_case.kv_lens.push_back(keys);
  }
  prefill_case.seed = suite.size() + 1;
  suite.push_back({group, false, std::move(prefill_case)});
  return suite.back().prefill_case;
}

std::vector<PrefillSuiteCase> prefill_suite() {
  Suite suite;
  add_head_dims(suite);
  add_head_ratios(suite);
  add_lengths(suite);
  add_layouts(suite);
  add_pages(suite);
  add_permutations(suite);
  add_batches(suite);
  add_scales(suite);
  for (const auto part_of : {prefill_mask_suite, prefill_composition_suite, prefill_fp8_suite}) {
    Suite part = part_of();
    std::move(part.begin(), part.end(), std::back_inserter(suite));
  }
  return suite;
}

}  // namespace attnjit::check
