#include "sparse_mla_suite.hpp"

#include <algorithm>
#include <utility>

#include "attnjit/sparse_mla.hpp"

namespace attnjit::check {
namespace {

using Suite = std::vector<SparseMlaSuiteCase>;

constexpr int default_heads = 16;

AttentionDescriptor prefill_of(int head_dim_qk, int head_dim_v, DataType dtype = DataType::bf16) {
  return sparse_mla_prefill_descriptor({.num_q_heads = default_heads,
                                        .head_dim_qk = head_dim_qk,
                                        .head_dim_v = head_dim_v,
                                        .dtype = dtype});
}

AttentionDescriptor decode_of(int head_dim_qk, KvEncoding encoding = KvEncoding::plain,
                              DataType dtype = DataType::bf16) {
  return sparse_mla_decode_descriptor({.num_q_heads = default_heads,
                                       .head_dim_qk = head_dim_qk,
                                       .kv_encoding = encoding,
                                       .dtype = dtype});
}

std::vector<AttentionDescriptor> decodes() {
  return {decode_of(576), decode_of(512), decode_of(576, KvEncoding::fp8_656),
          decode_of(512, KvEncoding::fp8_584)};
}

// Both operations, all encodings and types.
std::vector<AttentionDescriptor> formats() {
  std::vector<AttentionDescriptor> all = {prefill_of(576, 512), prefill_of(512, 512),
                                          prefill_of(576, 512, DataType::fp16)};
  for (const AttentionDescriptor& decode : decodes()) {
    all.push_back(decode);
  }
  return all;
}

bool is_prefill(const AttentionDescriptor& descriptor) {
  return descriptor.operation == Operation::sparse_mla_prefill;
}

std::string name_of(const AttentionDescriptor& descriptor) {
  return std::string(is_prefill(descriptor) ? "sparse prefill, " : "sparse decode, ") +
         std::string(to_string(descriptor.kv_encoding));
}

AttentionDescriptor with_heads(AttentionDescriptor descriptor, int num_q_heads) {
  descriptor.num_q_heads = num_q_heads;
  return descriptor;
}

// Adds a case of 3 requests with 2 query tokens each, or 6 query tokens of a prefill, and returns
// it for what is special about it.
SparseMlaCase& add(Suite& suite, const std::string& group, const AttentionDescriptor& descriptor,
                   int topk) {
  SparseMlaCase sparse_case;
  sparse_case.descriptor = descriptor;
  sparse_case.batch = is_prefill(descriptor) ? 6 : 3;
  sparse_case.seqlen_q = is_prefill(descriptor) ? 1 : 2;
  sparse_case.pool.topk = topk;
  sparse_case.pool.num_tokens = std::max(20, topk + topk / 2);
  sparse_case.pool.page_size = std::max(1, descriptor.page_size);
  sparse_case.has_page_gaps = suite.size() % 2 == 0;
  sparse_case.seed = suite.size() * 10 + 1;
  suite.push_back({group, sparse_case});
  return suite.back().sparse_case;
}

void add_heads(Suite& suite) {
  for (const AttentionDescriptor& descriptor : formats()) {
    for (const int heads : {1, 3, 12, 16, 20, 32, 40, 64, 71, 128}) {
      add(suite, name_of(descriptor) + ", heads", with_heads(descriptor, heads), 100);
    }
  }
}

void add_topk(Suite& suite) {
  for (const AttentionDescriptor& descriptor : formats()) {
    for (const int topk : {1, 5, 31, 32, 33, 63, 64, 65, 100, 512, 2048}) {
      for (const int heads : {16, 128}) {
        SparseMlaCase& added =
            add(suite, name_of(descriptor) + ", topk", with_heads(descriptor, heads), topk);
        added.pool.pattern = topk % 2 == 0 ? IndexPattern::mixed : IndexPattern::distinct;
      }
    }
  }
}

void add_pages(Suite& suite) {
  for (AttentionDescriptor descriptor : decodes()) {
    for (const int page_size : {1, 2, 61, 64, 69, 576}) {
      for (const KvLayoutTag tag : {KvLayoutTag::nhd, KvLayoutTag::hnd}) {
        descriptor.page_size = page_size;
        descriptor.kv_layout_tag = tag;
        for (const int seqlen_q : {1, 2, 4}) {
          SparseMlaCase& added = add(suite, name_of(descriptor) + ", pages", descriptor, 130);
          added.seqlen_q = seqlen_q;
          added.has_page_gaps = (seqlen_q == 2) == (tag == KvLayoutTag::nhd);
        }
      }
    }
  }
}

void add_lists(Suite& suite) {
  for (const AttentionDescriptor& descriptor : formats()) {
    for (const IndexPattern pattern :
         {IndexPattern::mixed, IndexPattern::distinct, IndexPattern::repeated,
          IndexPattern::empty_rows, IndexPattern::nothing}) {
      for (const LengthPattern lengths : {LengthPattern::all, LengthPattern::given,
                                          LengthPattern::partial, LengthPattern::zero}) {
        SparseMlaCase& added = add(suite, name_of(descriptor) + ", lists", descriptor, 200);
        added.pool.pattern = pattern;
        added.pool.lengths = lengths;
        added.pool.num_tokens = pattern == IndexPattern::distinct ? 150 : 300;
      }
    }
  }
}

void add_extra_pools(Suite& suite) {
  for (const AttentionDescriptor& descriptor : decodes()) {
    for (const int topk : {1, 65, 512}) {
      for (const int page_size : {1, 2, 61, 64}) {
        for (const LengthPattern lengths :
             {LengthPattern::all, LengthPattern::partial, LengthPattern::zero}) {
          SparseMlaCase& added =
              add(suite, name_of(descriptor) + ", two pools", descriptor, topk == 1 ? 64 : 100);
          added.pool.lengths = topk == 65 ? LengthPattern::partial : LengthPattern::all;
          added.extra_pool = {.topk = topk,
                              .num_tokens = topk + 10,
                              .page_size = page_size,
                              .pattern = IndexPattern::mixed,
                              .lengths = lengths};
        }
      }
    }
    SparseMlaCase& only_extra = add(suite, name_of(descriptor) + ", two pools", descriptor, 64);
    only_extra.pool.pattern = IndexPattern::nothing;
    only_extra.extra_pool = {.topk = 70, .num_tokens = 100, .page_size = 3};
  }
}

void add_sinks(Suite& suite) {
  for (AttentionDescriptor descriptor : formats()) {
    descriptor.has_sinks = true;
    for (const SinkSize size :
         {SinkSize::ordinary, SinkSize::large, SinkSize::negative, SinkSize::infinite}) {
      for (const IndexPattern pattern : {IndexPattern::mixed, IndexPattern::empty_rows}) {
        SparseMlaCase& added =
            add(suite, name_of(descriptor) + ", sinks", with_heads(descriptor, 40), 100);
        added.sinks = size;
        added.pool.pattern = pattern;
      }
    }
  }
}

void add_batches(Suite& suite) {
  for (const AttentionDescriptor& descriptor : formats()) {
    for (const int batch : {1, 74, 321}) {
      SparseMlaCase& added = add(suite, name_of(descriptor) + ", batches", descriptor, 64);
      added.batch = batch;
      added.pool.lengths = LengthPattern::partial;
      added.pool.num_tokens = 512;
    }
    SparseMlaCase& many =
        add(suite, name_of(descriptor) + ", 70000 query tokens", with_heads(descriptor, 1), 3);
    many.batch = 70000;
    many.seqlen_q = 1;
  }
}

void add_others(Suite& suite) {
  for (const auto& [head_dim_qk, head_dim_v] :
       {std::pair{320, 256}, {192, 128}, {128, 128}, {72, 40}, {8, 8}}) {
    for (const int heads : {7, 40}) {
      add(suite, "sparse prefill, other head dims",
          with_heads(prefill_of(head_dim_qk, head_dim_v), heads), 100);
    }
  }
  for (const AttentionDescriptor& descriptor : formats()) {
    for (const double scale : {1.352337788608801, -0.4, 1e-20, 0.0}) {
      add(suite, "sparse, scale not a power of two, negative, tiny or 0", descriptor, 100)
          .softmax_scale = scale;
    }
    AttentionDescriptor without_lse = descriptor;
    without_lse.returns_lse = false;
    add(suite, "sparse without LSE", without_lse, 100);
    add(suite, "sparse without largest scores", descriptor, 100).wants_max_logits = false;
  }
  add(suite, "sparse decode, fp16", decode_of(576, KvEncoding::plain, DataType::fp16), 100);
}

}  // namespace

std::vector<SparseMlaSuiteCase> sparse_mla_suite() {
  Suite suite;
  add_heads(suite);
  add_topk(suite);
  add_pages(suite);
  add_lists(suite);
  add_extra_pools(suite);
  add_sinks(suite);
  add_batches(suite);
  add_others(suite);
  return suite;
}

SparseMlaSuiteCase sparse_mla_step(const AttentionDescriptor& descriptor, int batch) {
  constexpr int default_topk = 2048;
  const int topk = descriptor.topk > 0 ? descriptor.topk : default_topk;
  SparseMlaCase sparse_case;
  sparse_case.descriptor = descriptor;
  sparse_case.batch = batch;
  sparse_case.seqlen_q = is_prefill(descriptor) ? 1 : std::max(1, descriptor.max_seqlen_q);
  sparse_case.pool = {
      .topk = topk, .num_tokens = 2 * topk, .page_size = std::max(1, descriptor.page_size)};
  return {"token-sparse step", sparse_case};
}

}  // namespace attnjit::check
