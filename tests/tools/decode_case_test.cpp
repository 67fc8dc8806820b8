// What a decode problem's queries see, and how much work that is: by hand.
#include "decode_case.hpp"

#include "catch.hpp"
#include "decode_suite.hpp"
#include "decode_timing.hpp"

namespace attnjit::check {
namespace {

DecodeCase window_case(int left, int right, int seqlen_q, std::vector<int> seq_lens) {
  DecodeCase decode_case;
  decode_case.descriptor = gqa_descriptor(8, 2, 64, 4);
  decode_case.descriptor.mask = MaskKind::sliding_window;
  decode_case.descriptor.window_left = left;
  decode_case.descriptor.window_right = right;
  decode_case.seqlen_q = seqlen_q;
  decode_case.seq_lens = std::move(seq_lens);
  return decode_case;
}

void check_keys(const KeyRange& keys, std::int64_t begin, std::int64_t end) {
  CHECK(keys.begin == begin);
  CHECK(keys.end == end);
}

TEST_CASE("a query sees its own key and the window around it, within the sequence") {
  const DecodeCase causal = window_case(9, 0, 4, {100});
  check_keys(visible_keys(causal, 100, 0), 87, 97);
  check_keys(visible_keys(causal, 100, 3), 90, 100);
  check_keys(visible_keys(causal, 5, 0), 0, 2);
  CHECK(visible_keys(causal, 2, 0).size() == 0);  // stands before the first key
  CHECK(visible_keys(causal, 0, 3).size() == 0);
  const DecodeCase both = window_case(9, 2, 4, {100});
  check_keys(visible_keys(both, 100, 0), 87, 99);
  check_keys(visible_keys(both, 100, 2), 89, 100);
  check_keys(visible_keys(window_case(-1, 0, 4, {100}), 100, 0), 0, 97);
  check_keys(visible_keys(window_case(9, -1, 4, {100}), 100, 0), 87, 100);
}

TEST_CASE("mates become shorter, or empty where a window left them no first keys") {
  const DecodeCase windowed = window_case(9, 0, 1, {100, 9, 6, 60});
  CHECK(with_shorter_mates(windowed, 0) == std::vector<int>{0, 9, 2, 60});
  CHECK(with_shorter_mates(windowed, 1) == std::vector<int>{100, 3, 6, 0});
}

TEST_CASE("bytes and FLOPs are counted for what a window shows only") {
  const double columns = 64 + 64;
  const CallWork all = [] {
    DecodeCase decode_case = window_case(-1, 0, 2, {100, 1000});
    decode_case.descriptor.mask = MaskKind::causal;
    return count_work(decode_case);
  }();
  CHECK(all.flops == 2 * 1100.0 * 2 * 8 * columns);  // no causal discount
  CHECK(all.bytes() == 1100 * 2 * columns * 2 + 2 * 2 * 8 * columns * 2);
  // Each of two queries sees 10 keys of either request, both together 11.
  const CallWork windowed = count_work(window_case(9, 0, 2, {100, 1000}));
  CHECK(windowed.flops == 2 * 20.0 * 2 * 8 * columns);
  CHECK(windowed.bytes() == 22 * 2 * columns * 2 + 2 * 2 * 8 * columns * 2);
}

TEST_CASE("a case with a window and sinks says so") {
  DecodeCase decode_case = window_case(9, 0, 2, {100});
  CHECK(describe(decode_case).find(" sliding_window 9/0 | b 1 ") != std::string::npos);
  decode_case.descriptor.has_sinks = true;
  decode_case.sinks = SinkSize::infinite;
  CHECK(describe(decode_case).find(" sliding_window 9/0, sinks infinite | b 1 ") !=
        std::string::npos);
}

}  // namespace
}  // namespace attnjit::check
