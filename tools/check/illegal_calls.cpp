#include "illegal_calls.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "attnjit/argument_error.hpp"
#include "fake_prefill_call.hpp"
#include "fuzz_cases.hpp"
#include "fuzz_random.hpp"
#include "prefill_arguments.hpp"
#include "refusal.hpp"

namespace attnjit::check {
namespace {

struct Argument {
  std::string_view name;
  TensorView PrefillCall::*place;
  bool has_free_extent = false;  // the last one: a longer tensor is as good, or may be
};

constexpr std::array arguments = {
    Argument{"q", &PrefillCall::q},
    Argument{"k", &PrefillCall::k},
    Argument{"v", &PrefillCall::v},
    Argument{"q_scales", &PrefillCall::q_scales, true},
    Argument{"k_scales", &PrefillCall::k_scales, true},
    Argument{"v_scales", &PrefillCall::v_scales, true},
    Argument{"out_scale", &PrefillCall::out_scale},
    Argument{"q_offsets", &PrefillCall::q_offsets, true},
    Argument{"q_lens", &PrefillCall::q_lens},
    Argument{"kv_offsets", &PrefillCall::kv_offsets},
    Argument{"seq_lens", &PrefillCall::seq_lens},
    Argument{"block_table", &PrefillCall::block_table, true},
    Argument{"query_positions", &PrefillCall::query_positions},
    Argument{"key_positions", &PrefillCall::key_positions},
    Argument{"mask", &PrefillCall::mask, true},
    Argument{"prefix_lens", &PrefillCall::prefix_lens},
    Argument{"q_segments", &PrefillCall::q_segments},
    Argument{"kv_segments", &PrefillCall::kv_segments, true},
    Argument{"alibi_slopes", &PrefillCall::alibi_slopes},
    Argument{"bias", &PrefillCall::bias, true},
    Argument{"block_mask", &PrefillCall::block_mask, true},
    Argument{"sinks", &PrefillCall::sinks},
    Argument{"out", &PrefillCall::out},
};

const Argument& draw_argument(FuzzRandom& random, const PrefillCall& call) {
  while (true) {
    const int place = random.between(0, static_cast<int>(arguments.size()) - 1);
    const Argument& argument = arguments.at(static_cast<std::size_t>(place));
    if ((call.*argument.place).data != nullptr) {
      return argument;
    }
  }
}

// Says what it changed.
std::string spoil(FuzzRandom& random, TensorView& view, bool has_free_extent) {
  const auto last = static_cast<std::size_t>(view.rank - 1);
  const int kind = random.between(0, 3);
  if (kind == 0 && !has_free_extent) {
    view.shape[last] += 8;
    return fmt::format("last extent {}", view.shape[last]);
  }
  if (kind == 1 && view.shape[last] > 1) {
    view.strides[last] = -1;
    return "last stride -1";
  }
  if (kind == 2) {
    --view.rank;
    return fmt::format("rank {}", view.rank);
  }
  view.dtype = DataType::int64;
  return "dtype int64";
}

PrefillCase draw_prefill(FuzzRandom& random) {
  while (true) {
    const FuzzCase fuzz_case = make_fuzz_case(random.bits(), 0);
    if (const auto* prefill = std::get_if<PrefillCase>(&fuzz_case)) {
      return *prefill;
    }
  }
}

}  // namespace

IllegalCall make_illegal_call(std::uint64_t seed, std::uint64_t index) {
  FuzzRandom random(seed, index, FuzzSubject::illegal_call);
  const PrefillCase prefill_case = draw_prefill(random);
  IllegalCall illegal = {prefill_case.descriptor, fake_call(prefill_case), "", ""};
  if (random.one_in(20)) {
    illegal.argument = "softmax_scale";
    illegal.change = "nan";
    illegal.call.softmax_scale = std::numeric_limits<float>::quiet_NaN();
    return illegal;
  }
  const Argument& argument = draw_argument(random, illegal.call);
  illegal.argument = argument.name;
  illegal.change = spoil(random, illegal.call.*argument.place, argument.has_free_extent);
  return illegal;
}

std::string describe(const IllegalCall& illegal) {
  return fmt::format("{} of {}: {}", illegal.argument, to_string(illegal.descriptor.operation),
                     illegal.change);
}

CheckResult check_refusal(const IllegalCall& illegal) {
  CheckResult result;
  try {
    check_prefill_call(illegal.descriptor, illegal.call);
    result.failure = "accepted";
  } catch (const ArgumentError& error) {
    result.failure = find_fault(error.violations(), {illegal.argument});
  }
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::check
