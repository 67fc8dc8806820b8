#include "decode_suite.hpp"

#include <iterator>
#include <utility>

#include "window_suite.hpp"

namespace attnjit::check {
namespace {

using Suite = std::vector<SuiteCase>;

// The lengths of the grid: short, a few blocks, long, and a mix that holds empty requests.
std::vector<std::vector<int>> grid_lengths(int batch) {
  std::vector<int> mixed = varied_lengths(batch, 2000, static_cast<std::uint64_t>(batch));
  for (std::size_t i = 0; i < mixed.size(); i += 3) {
    mixed[i] = i % 2 == 0 ? 0 : mixed[i];
  }
  return {equal_lengths(batch, 20), equal_lengths(batch, 140), equal_lengths(batch, 4096), mixed};
}

void add(Suite& suite, const std::string& group, const AttentionDescriptor& descriptor,
         int seqlen_q, std::vector<int> seq_lens) {
  DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = seqlen_q;
  decode_case.seq_lens = std::move(seq_lens);
  decode_case.seed = suite.size() + 1;
  suite.push_back({group, CheckKind::reference, std::move(decode_case)});
}

AttentionDescriptor with_type(AttentionDescriptor descriptor, DataType type) {
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = type;
  return descriptor;
}

void add_mla_grid(Suite& suite) {
  for (const int heads : {1, 3, 9, 16, 63, 64, 126, 128}) {
    for (const int batch : {1, 2, 6, 64}) {
      for (const int seqlen_q : {1, 2, 4}) {
        for (const std::vector<int>& lengths : grid_lengths(batch)) {
          const AttentionDescriptor descriptor = mla_descriptor(heads, seqlen_q);
          add(suite, "MLA 576/512, heads " + std::to_string(heads) + ", bf16", descriptor, seqlen_q,
              lengths);
          if (heads == 16 || heads == 128) {
            add(suite, "MLA 576/512, heads " + std::to_string(heads) + ", fp16",
                with_type(descriptor, DataType::fp16), seqlen_q, lengths);
          }
        }
      }
    }
  }
}

void add_gqa_grid(Suite& suite) {
  for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 29, 32, 64, 71, 128}) {
    const int kv_heads = ratio <= 16 ? 4 : 1;
    for (const int seqlen_q : {1, 3}) {
      for (const std::vector<int>& lengths : grid_lengths(6)) {
        add(suite, "GQA 128/128, ratio " + std::to_string(ratio),
            gqa_descriptor(ratio * kv_heads, kv_heads, 128, seqlen_q), seqlen_q, lengths);
      }
    }
  }
}

void add_head_dims(Suite& suite) {
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{{64, 64},
                                                              {72, 72},
                                                              {80, 80},
                                                              {96, 96},
                                                              {112, 112},
                                                              {192, 128},
                                                              {192, 192},
                                                              {224, 224},
                                                              {256, 256},
                                                              {512, 512},
                                                              {8, 8},
                                                              {136, 56}}) {
    for (const DataType type : {DataType::bf16, DataType::fp16}) {
      AttentionDescriptor descriptor = with_type(gqa_descriptor(12, 4, qk, 2), type);
      descriptor.head_dim_v = v;
      add(suite, "head dims, v separate", descriptor, 2, varied_lengths(5, 700, 9));
    }
  }
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{
           {320, 256}, {288, 256}, {576, 576}, {192, 128}, {448, 384}, {128, 128}}) {
    for (const int heads : {4, 8, 20}) {  // 8, 16 and 40 rows
      AttentionDescriptor descriptor = mla_descriptor(heads, 2);
      descriptor.head_dim_qk = qk;
      descriptor.head_dim_v = v;
      add(suite, "head dims, v a prefix of k", descriptor, 2, varied_lengths(5, 700, 9));
    }
  }
  for (const int heads : {2, 32, 80}) {  // 2, 32 and 80 rows of each of two kv heads
    AttentionDescriptor descriptor = mla_descriptor(heads, 2);
    descriptor.num_kv_heads = 2;
    add(suite, "latent cache of two kv heads", descriptor, 2, varied_lengths(5, 700, 10));
  }
}

void add_layouts(Suite& suite) {
  for (const int page_size : {1, 3, 4, 7, 8, 16, 32, 48, 64, 128, 256}) {
    for (const KvLayoutTag tag : {KvLayoutTag::nhd, KvLayoutTag::hnd}) {
      for (const CacheArrangement arrangement :
           {CacheArrangement::pool, CacheArrangement::per_request, CacheArrangement::layered}) {
        for (AttentionDescriptor descriptor :
             {gqa_descriptor(12, 4, 128, 2), mla_descriptor(8, 2), mla_descriptor(40, 2)}) {
          descriptor.page_size = page_size;
          descriptor.kv_layout_tag = tag;
          add(suite, "page size " + std::to_string(page_size), descriptor, 2,
              varied_lengths(5, 700, 4));
          suite.back().decode_case.arrangement = arrangement;
        }
      }
    }
  }
}

void add_masks(Suite& suite) {
  for (AttentionDescriptor descriptor : {gqa_descriptor(10, 2, 128, 3), mla_descriptor(40, 3)}) {
    descriptor.mask = MaskKind::none;
    add(suite, "mask none", descriptor, 3, varied_lengths(5, 700, 5));
    descriptor.mask = MaskKind::materialized_bool;
    add(suite, "mask bool", descriptor, 3, varied_lengths(5, 700, 5));
    descriptor.mask = MaskKind::materialized_additive;
    for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
      descriptor.dtype_mask = type;
      add(suite, "mask additive", descriptor, 3, varied_lengths(5, 700, 5));
    }
    for (const MaskKind mask : {MaskKind::materialized_bool, MaskKind::materialized_additive}) {
      descriptor.mask = mask;
      descriptor.dtype_mask =
          mask == MaskKind::materialized_bool ? DataType::uint8 : DataType::bf16;
      add(suite, "mask shorter than a sequence", descriptor, 3, varied_lengths(5, 700, 5));
      suite.back().decode_case.mask_shortage = 70;
    }
  }
}

constexpr int edge_lengths[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 8736, 163840};

void add_edges(Suite& suite) {
  for (const AttentionDescriptor& descriptor :
       {gqa_descriptor(12, 4, 128, 4), mla_descriptor(4, 4), mla_descriptor(16, 4)}) {
    for (const int length : edge_lengths) {
      add(suite, "edge lengths", descriptor, 4, {length, 5, length});
    }
    // Fewer query tokens than the descriptor allows, and lengths shorter than them.
    add(suite, "edge lengths", descriptor, 2, {1, 2, 3, 300});
    add(suite, "edge lengths", descriptor, 4, {1, 2, 3, 4, 0});
  }
  add(suite, "many query tokens", mla_descriptor(16, 128), 128, {4096, 100, 128, 700});
  add(suite, "many query tokens", gqa_descriptor(14, 2, 64, 128), 128, {4096, 100, 128, 700});
  for (const int heads : {7, 9, 12, 20, 40}) {
    for (const int seqlen_q : {5, 7, 9}) {
      add(suite, "rows across tiles", mla_descriptor(heads, seqlen_q), seqlen_q,
          varied_lengths(4, 900, 6));
    }
  }
  add(suite, "many requests", gqa_descriptor(2, 1, 64, 1), 1, varied_lengths(70000, 4, 7));
  for (const int heads : {8, 16, 40}) {
    add(suite, "many requests", mla_descriptor(heads, 1), 1, varied_lengths(1000, 60, 7));
    add(suite, "many requests", mla_descriptor(heads, 1), 1, varied_lengths(100, 1500, 8));
  }
  add(suite, "scale not a power of two", mla_descriptor(16, 1), 1, varied_lengths(6, 900, 8));
  suite.back().decode_case.softmax_scale =
      1.352337788608801;  // DeepSeek-V3's, with YaRN, for N(0, 1) caches
  for (const AttentionDescriptor& descriptor :
       {gqa_descriptor(12, 4, 128, 2), mla_descriptor(16, 1), mla_descriptor(64, 1)}) {
    for (const double scale : {-0.4, 1e-20}) {  // the kernels take the sign apart, or never 0
      add(suite, "scale negative or tiny", descriptor, descriptor.max_seqlen_q,
          varied_lengths(6, 900, 8));
      suite.back().decode_case.softmax_scale = scale;
    }
  }
}

// The sum of a piece's values, not divided, is more than fp16 holds.
void add_large_values(Suite& suite) {
  for (AttentionDescriptor descriptor : {gqa_descriptor(12, 4, 128, 2), mla_descriptor(16, 1),
                                         mla_descriptor(16, 2), mla_descriptor(128, 1)}) {
    for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
      descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = dtype;
      add(suite, "values that add up to more than fp16 holds", descriptor, descriptor.max_seqlen_q,
          {9000, 0, 20000});
      suite.back().decode_case.softmax_scale = 0;
      suite.back().decode_case.kv_offset = 1000;
      suite.back().decode_case.kv_scale = 100;
    }
  }
}

void add_plans(Suite& suite) {
  for (const PlanSource plan : {PlanSource::host, PlanSource::stale}) {
    for (const AttentionDescriptor& descriptor :
         {gqa_descriptor(12, 4, 128, 2), mla_descriptor(16, 1), mla_descriptor(16, 2),
          mla_descriptor(128, 1)}) {
      for (const std::vector<int>& lengths :
           {varied_lengths(1, 30000, 1), varied_lengths(7, 3000, 2), varied_lengths(300, 100, 3)}) {
        add(suite, "plan " + std::string(to_string(plan)), descriptor, descriptor.max_seqlen_q,
            lengths);
        suite.back().decode_case.plan = plan;
      }
    }
  }
}

void add_permutations(Suite& suite) {
  for (const AttentionDescriptor& descriptor :
       {gqa_descriptor(12, 4, 128, 2), mla_descriptor(16, 1), mla_descriptor(16, 2),
        mla_descriptor(128, 1)}) {
    for (const std::vector<int>& lengths :
         {varied_lengths(1, 30000, 1), varied_lengths(7, 3000, 2), equal_lengths(64, 1000)}) {
      add(suite, "permuted pages, equal to the bit", descriptor, descriptor.max_seqlen_q, lengths);
      suite.back().kind = CheckKind::permutation;
    }
  }
}

// Lengths from nothing to many chunks, long ones before and behind short ones.
std::vector<int> invariant_lengths(int batch) {
  std::vector<int> lengths = varied_lengths(batch, 2500, static_cast<std::uint64_t>(batch));
  lengths.front() = 9000;
  lengths.back() = 0;
  lengths[lengths.size() / 2] = 20000;
  return lengths;
}

// Chunks count from the first key that a window shows, which follows from the request's length.
void add_windowed_batch_invariance(Suite& suite, AttentionDescriptor descriptor) {
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = 2500;
  descriptor.window_right = 0;
  descriptor.has_sinks = true;
  add(suite, "batch-invariant, equal to the bit", descriptor, descriptor.max_seqlen_q,
      invariant_lengths(32));
  suite.back().kind = CheckKind::batch;
  for (const PlanSource plan : {PlanSource::device, PlanSource::host, PlanSource::stale}) {
    add(suite, "batch-invariant", descriptor, descriptor.max_seqlen_q, invariant_lengths(7));
    suite.back().decode_case.plan = plan;
  }
}

void add_batch_invariance(Suite& suite) {
  for (AttentionDescriptor descriptor : {gqa_descriptor(12, 4, 128, 2), mla_descriptor(16, 1),
                                         mla_descriptor(16, 2), mla_descriptor(128, 1)}) {
    descriptor.batch_invariant = true;
    for (const PlanSource plan : {PlanSource::device, PlanSource::host}) {
      for (const int batch : {3, 64}) {
        add(suite, "batch-invariant, equal to the bit", descriptor, descriptor.max_seqlen_q,
            invariant_lengths(batch));
        suite.back().kind = CheckKind::batch;
        suite.back().decode_case.plan = plan;
      }
    }
    for (const PlanSource plan : {PlanSource::device, PlanSource::host, PlanSource::stale}) {
      for (const std::vector<int>& lengths :
           {varied_lengths(1, 30000, 1), varied_lengths(300, 100, 3), invariant_lengths(7),
            equal_lengths(1, 163840)}) {
        add(suite, "batch-invariant", descriptor, descriptor.max_seqlen_q, lengths);
        suite.back().decode_case.plan = plan;
      }
    }
    add_windowed_batch_invariance(suite, descriptor);
  }
}

AttentionDescriptor with_pages(AttentionDescriptor descriptor, int page_size) {
  descriptor.page_size = page_size;
  return descriptor;
}

// Pages too small or too odd for tensor copies, where gathering their rows could go wrong; of few
// rows and of many.
void add_gathered_rows(Suite& suite) {
  for (const int heads : {4, 16}) {
    const AttentionDescriptor descriptor = with_pages(mla_descriptor(heads, 4), 1);
    for (const int length : edge_lengths) {
      add(suite, "gathered rows, edge lengths", descriptor, 4, {length, 5, length});
    }
    add(suite, "gathered rows, edge lengths", descriptor, 2, {1, 2, 3, 300});
    add(suite, "gathered rows, edge lengths", descriptor, 4, {1, 2, 3, 4, 0});
  }
  for (const int heads : {8, 16, 64}) {
    const AttentionDescriptor descriptor = with_pages(mla_descriptor(heads, 1), 1);
    add(suite, "gathered rows, many requests", descriptor, 1, varied_lengths(1000, 60, 7));
    add(suite, "gathered rows, many requests", descriptor, 1, varied_lengths(300, 200, 8));
    add(suite, "gathered rows, many requests", descriptor, 1, varied_lengths(100, 1500, 8));
    for (const PlanSource plan : {PlanSource::host, PlanSource::stale}) {
      add(suite, "gathered rows, plan " + std::string(to_string(plan)),
          with_pages(mla_descriptor(heads, 1), 12), 1, varied_lengths(7, 3000, 2));
      suite.back().decode_case.plan = plan;
    }
    for (const std::vector<int>& lengths :
         {varied_lengths(1, 30000, 1), varied_lengths(7, 3000, 2), equal_lengths(64, 1000)}) {
      add(suite, "gathered rows, permuted pages, equal to the bit", descriptor, 1, lengths);
      suite.back().kind = CheckKind::permutation;
    }
    add(suite, "gathered rows, batch-invariant", descriptor, 1, invariant_lengths(7));
    suite.back().decode_case.descriptor.batch_invariant = true;
    AttentionDescriptor windowed = with_pages(mla_descriptor(heads / 4, 4), 3);
    windowed.mask = MaskKind::sliding_window;
    windowed.window_left = 99;
    windowed.window_right = 0;
    add(suite, "gathered rows, sliding window", windowed, 4, varied_lengths(7, 3000, 2));
    add(suite, "gathered rows, sliding window", windowed, 2, {0, 1, 5, 64, 99, 100, 130, 9000});
  }
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{{320, 256}, {192, 128}, {448, 384}}) {
    for (const int heads : {4, 20}) {
      AttentionDescriptor descriptor =
          with_type(with_pages(mla_descriptor(heads, 2), 5), DataType::fp16);
      descriptor.head_dim_qk = qk;
      descriptor.head_dim_v = v;
      descriptor.num_kv_heads = 2;
      add(suite, "gathered rows, head dims", descriptor, 2, varied_lengths(5, 700, 9));
    }
  }
}

}  // namespace

AttentionDescriptor mla_descriptor(int num_q_heads, int max_seqlen_q) {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = 576;
  descriptor.head_dim_v = 512;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = 1;
  descriptor.value_source = ValueSource::prefix_of_k;
  descriptor.max_seqlen_q = max_seqlen_q;
  return descriptor;
}

AttentionDescriptor gqa_descriptor(int num_q_heads, int num_kv_heads, int head_dim,
                                   int max_seqlen_q) {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = num_kv_heads;
  descriptor.max_seqlen_q = max_seqlen_q;
  return descriptor;
}

std::vector<SuiteCase> decode_suite() {
  Suite suite;
  add_mla_grid(suite);
  add_gqa_grid(suite);
  add_head_dims(suite);
  add_layouts(suite);
  add_masks(suite);
  add_edges(suite);
  add_large_values(suite);
  add_plans(suite);
  add_permutations(suite);
  add_batch_invariance(suite);
  add_gathered_rows(suite);
  Suite windows = window_suite();
  std::move(windows.begin(), windows.end(), std::back_inserter(suite));
  return suite;
}

}  // namespace attnjit::check
