#include "window_suite.hpp"

#include <string>
#include <utility>

namespace attnjit::check {
namespace {

using Suite = std::vector<SuiteCase>;

SuiteCase& add(Suite& suite, const std::string& group, const AttentionDescriptor& descriptor,
               int seqlen_q, std::vector<int> seq_lens) {
  DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = seqlen_q;
  decode_case.seq_lens = std::move(seq_lens);
  decode_case.seed = suite.size() + 1;
  suite.push_back({group, CheckKind::reference, std::move(decode_case)});
  return suite.back();
}

// One for each attention kernel, for up to four query tokens.
std::vector<AttentionDescriptor> kernel_descriptors(int max_seqlen_q = 4) {
  return {gqa_descriptor(12, 4, 128, max_seqlen_q), mla_descriptor(4, max_seqlen_q),
          mla_descriptor(40, max_seqlen_q)};
}

AttentionDescriptor with_window(AttentionDescriptor descriptor, int left, int right) {
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = left;
  descriptor.window_right = right;
  return descriptor;
}

// Causal; `width` keys, the query's own among them.
AttentionDescriptor with_width(const AttentionDescriptor& descriptor, int width) {
  return with_window(descriptor, width - 1, 0);
}

AttentionDescriptor with_sinks(AttentionDescriptor descriptor) {
  descriptor.has_sinks = true;
  return descriptor;
}

// A few long requests, which are split; many, which are not; mixed ones, some of them empty.
std::vector<std::vector<int>> window_lengths() {
  return {equal_lengths(2, 9000),
          equal_lengths(300, 700),
          {0, 1, 3, 5, 63, 64, 65, 129, 130, 1000, 0, 5000}};
}

void add_widths(Suite& suite) {
  constexpr int wider_than_any = 1 << 20;
  for (const int width : {1, 63, 64, 65, 128, 4096, wider_than_any}) {
    for (const AttentionDescriptor& descriptor : kernel_descriptors()) {
      for (const int seqlen_q : {1, 2, 4}) {
        for (const std::vector<int>& lengths : window_lengths()) {
          add(suite, "sliding window, width " + std::to_string(width),
              with_width(descriptor, width), seqlen_q, lengths);
        }
      }
    }
  }
  for (const AttentionDescriptor& descriptor : kernel_descriptors(1)) {
    for (const std::vector<int>& lengths : window_lengths()) {
      add(suite, "sliding window, one query token", with_width(descriptor, 128), 1, lengths);
    }
  }
}

void add_many_tokens(Suite& suite) {
  const std::string group = "sliding window, many query tokens";
  for (const int width : {1, 65, 200}) {
    for (const AttentionDescriptor& descriptor :
         {mla_descriptor(16, 128), gqa_descriptor(14, 2, 64, 128)}) {
      for (const int seqlen_q : {100, 128}) {
        add(suite, group, with_width(descriptor, width), seqlen_q, {4096, 100, 128, 700, 0, 31});
      }
    }
    add(suite, group, with_width(mla_descriptor(1, 16), width), 16, {4096, 100, 15, 700, 0, 31});
  }
}

void add_both_sides(Suite& suite) {
  for (const auto& [left, right] :
       std::vector<std::pair<int, int>>{{3, 2}, {70, 1}, {-1, 1}, {64, -1}, {0, 0}}) {
    for (const AttentionDescriptor& descriptor : kernel_descriptors()) {
      for (const std::vector<int>& lengths : window_lengths()) {
        add(suite, "window to both sides", with_window(descriptor, left, right), 4, lengths);
      }
    }
  }
}

void add_window_layouts(Suite& suite) {
  for (const int page_size : {8, 16, 256}) {
    for (AttentionDescriptor descriptor : kernel_descriptors()) {
      descriptor.page_size = page_size;
      for (const std::vector<int>& lengths : window_lengths()) {
        add(suite, "sliding window, other pages", with_width(descriptor, 100), 3, lengths);
      }
      add(suite, "sliding window, other pages", with_width(descriptor, 100), 3,
          varied_lengths(5, 700, 4))
          .decode_case.arrangement = CacheArrangement::per_request;
    }
  }
}

void add_window_plans(Suite& suite) {
  for (const int width : {128, 4096}) {
    for (const AttentionDescriptor& descriptor : kernel_descriptors()) {
      for (const std::vector<int>& lengths :
           {varied_lengths(1, 30000, 1), varied_lengths(7, 3000, 2), varied_lengths(300, 100, 3)}) {
        for (const PlanSource plan : {PlanSource::host, PlanSource::stale}) {
          add(suite, "sliding window, plan " + std::string(to_string(plan)),
              with_width(descriptor, width), 2, lengths)
              .decode_case.plan = plan;
        }
        add(suite, "sliding window, permuted pages", with_width(descriptor, width), 2, lengths)
            .kind = CheckKind::permutation;
      }
    }
  }
}

void add_sinks(Suite& suite) {
  std::vector<AttentionDescriptor> descriptors = kernel_descriptors();
  descriptors.push_back(gqa_descriptor(64, 8, 64, 1));  // gpt-oss
  descriptors.push_back(mla_descriptor(128, 1));
  for (const AttentionDescriptor& descriptor : descriptors) {
    for (const bool has_window : {false, true}) {
      const AttentionDescriptor with_all =
          with_sinks(has_window ? with_width(descriptor, 128) : descriptor);
      for (const std::vector<int>& lengths : window_lengths()) {
        for (const SinkSize size :
             {SinkSize::ordinary, SinkSize::large, SinkSize::negative, SinkSize::infinite}) {
          add(suite, has_window ? "sinks and sliding window" : "sinks", with_all,
              with_all.max_seqlen_q, lengths)
              .decode_case.sinks = size;
        }
        SuiteCase& oracle = add(suite, "sink oracle", with_all, with_all.max_seqlen_q, lengths);
        oracle.kind = CheckKind::sink_oracle;
        oracle.decode_case.softmax_scale = 0;
        oracle.decode_case.kv_scale = 0;
        oracle.decode_case.kv_offset = 1;
      }
    }
  }
}

// Chunks count from the first visible block.
void add_batch_invariant(Suite& suite) {
  for (AttentionDescriptor descriptor : kernel_descriptors()) {
    descriptor.batch_invariant = true;
    for (const int width : {100, 4096}) {
      for (const std::vector<int>& lengths : window_lengths()) {
        for (const PlanSource plan : {PlanSource::device, PlanSource::host, PlanSource::stale}) {
          add(suite, "sinks and sliding window, batch-invariant",
              with_sinks(with_width(descriptor, width)), 2, lengths)
              .decode_case.plan = plan;
        }
      }
    }
  }
}

}  // namespace

std::vector<SuiteCase> window_suite() {
  Suite suite;
  add_widths(suite);
  add_many_tokens(suite);
  add_both_sides(suite);
  add_window_layouts(suite);
  add_window_plans(suite);
  add_sinks(suite);
  add_batch_invariant(suite);
  return suite;
}

}  // namespace attnjit::check
