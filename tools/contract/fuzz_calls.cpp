#include "fuzz_calls.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "fuzz_cases.hpp"
#include "fuzz_random.hpp"
#include "merge_case.hpp"
#include "problems.hpp"

namespace attnjit::contract {
namespace {

using check::FuzzRandom;
using check::FuzzSubject;

constexpr int most_requests = 6;

// Query tokens among at least as many keys; `keys` of every request unless it is 0.
check::Lengths draw_lengths(FuzzRandom& random, int keys) {
  check::Lengths lengths;
  const int batch = random.between(1, most_requests);
  for (int b = 0; b < batch; ++b) {
    const int most = random.pick({1, 17, 64, 65, 129, 400});
    const int kv_len = keys > 0 ? keys : random.between(1, most);
    const int q_len = random.one_in(4) ? kv_len : random.between(0, std::min(kv_len, 150));
    lengths.emplace_back(q_len, kv_len);
  }
  lengths.front().first = std::max(1, lengths.front().first);  // something to compute
  return lengths;
}

void draw_mask(FuzzRandom& random, AttentionDescriptor& descriptor) {
  descriptor.mask = random.pick({MaskKind::causal, MaskKind::causal, MaskKind::none,
                                 MaskKind::sliding_window, MaskKind::chunked_causal});
  if (descriptor.mask == MaskKind::sliding_window) {
    descriptor.window_left = random.pick({0, 31, 63, 64, 100});
    descriptor.window_right = random.pick({0, 0, 3});
  } else if (descriptor.mask == MaskKind::chunked_causal) {
    descriptor.chunk_size = random.pick({7, 64, 100});
  }
}

DataType draw_dtype(FuzzRandom& random) {
  return random.pick({DataType::bf16, DataType::bf16, DataType::fp16});
}

// What consecutive calls share.
FuzzCall draw_flare(FuzzRandom& random) {
  FuzzCall call;
  FlareMlaPrefillShape shape;
  shape.num_heads = random.pick({4, 5, 8, 16});  // the cosine distance of few outputs says little
  std::tie(shape.q_depth, shape.depth) = random.pick<std::pair<int, int>>(
      {{192, 128}, {192, 128}, {192, 128}, {96, 64}, {136, 128}, {256, 128}});
  shape.dtype = draw_dtype(random);
  call.rope.page_size = random.pick({0, 1, 3, 16, 64, 64, 128, 256});
  call.rope.width = shape.q_depth - shape.depth + 8 * random.pick({0, 1, 56, 64});
  call.problem.descriptor = flare_problem(shape, {{1, 1}}).descriptor;
  draw_mask(random, call.problem.descriptor);
  return call;
}

FuzzCall draw_append(FuzzRandom& random) {
  FuzzCall call;
  call.kind = FuzzCallKind::append;
  const bool is_latent = random.one_in(3);
  const int heads = is_latent ? 1 : random.pick({1, 2, 3, 8});
  const int head_dim = 8 * random.between(1, 32);
  AttentionDescriptor descriptor =
      with_types(check::paged_descriptor(heads, heads, head_dim), draw_dtype(random));
  if (is_latent) {
    descriptor = with_dims(descriptor, 576, 512);
    descriptor.value_source = ValueSource::prefix_of_k;
  } else if (random.one_in(3)) {
    descriptor.head_dim_v = 8 * random.between(1, 32);
  }
  call.problem.descriptor = with_pages(descriptor, random.pick({1, 2, 7, 16, 48, 64, 64, 128, 256}),
                                       random.pick({KvLayoutTag::nhd, KvLayoutTag::hnd}));
  return call;
}

FuzzCall draw_merge(FuzzRandom& random) {
  FuzzCall call;
  call.kind = FuzzCallKind::merge;
  const int kv_heads = random.pick({4, 8});
  call.problem.descriptor =
      with_types(check::ragged_descriptor(kv_heads * random.pick({1, 3, 4}), kv_heads,
                                          random.pick({64, 80, 128, 256})),
                 draw_dtype(random));
  draw_mask(random, call.problem.descriptor);
  return call;
}

// What is the call's own.
void draw_call(FuzzRandom& random, FuzzCall& call) {
  const bool has_equal_keys = call.kind == FuzzCallKind::flare && call.rope.page_size == 0;
  const AttentionDescriptor descriptor = call.problem.descriptor;
  call.problem = prefill_of(descriptor, draw_lengths(random, has_equal_keys ? 150 : 0));
  call.problem.rows_before = random.pick({0, 2, 63});
  call.problem.seed = random.bits() >> 16;
  call.chunks = random.pick({2, 3, 5, 32});
  if (call.kind == FuzzCallKind::flare && random.one_in(2)) {
    call.kind = FuzzCallKind::flare_chunks;
  }
  if (call.kind == FuzzCallKind::append) {
    call.append = random.pick({AppendForm::block_table, AppendForm::slots});
    call.problem.arrangement =
        call.append == AppendForm::slots
            ? check::CacheArrangement::pool
            : random.pick({check::CacheArrangement::pool, check::CacheArrangement::per_request,
                           check::CacheArrangement::layered});
  }
}

}  // namespace

std::string_view to_string(FuzzCallKind kind) {
  switch (kind) {
    case FuzzCallKind::flare:
      return "flare_mla_prefill";
    case FuzzCallKind::flare_chunks:
      return "flare_mla_prefill in chunks";
    case FuzzCallKind::append:
      return "append_kv_cache";
    case FuzzCallKind::merge:
      return "merge_states";
  }
  return "";
}

FuzzCall make_fuzz_call(std::uint64_t seed, std::uint64_t index) {
  FuzzRandom shared(seed, index / check::cases_per_descriptor, FuzzSubject::call_kernel);
  const int kind = shared.between(0, 2);
  FuzzCall call = kind == 0   ? draw_flare(shared)
                  : kind == 1 ? draw_append(shared)
                              : draw_merge(shared);
  FuzzRandom random(seed, index, FuzzSubject::call);
  draw_call(random, call);
  return call;
}

std::string describe(const FuzzCall& call) {
  std::string problem = describe(call.problem);
  switch (call.kind) {
    case FuzzCallKind::flare:
    case FuzzCallKind::flare_chunks:
      return fmt::format("{}, rope of {} columns, page {}, {} chunks: {}", to_string(call.kind),
                         call.rope.width, call.rope.page_size,
                         call.kind == FuzzCallKind::flare ? 1 : call.chunks, problem);
    case FuzzCallKind::append:
      return fmt::format("{} by {}: {}", to_string(call.kind),
                         call.append == AppendForm::slots ? "slots" : "block table", problem);
    case FuzzCallKind::merge:
      return fmt::format("{} of {} chunks: {}", to_string(call.kind), call.chunks, problem);
  }
  return problem;
}

ContractCase as_case(const FuzzCall& call) {
  const std::string name = describe(call);
  switch (call.kind) {
    case FuzzCallKind::flare:
      return flare_case(name, call.problem, call.rope);
    case FuzzCallKind::flare_chunks:
      return flare_chunks_case(name, call.problem, call.chunks, call.rope);
    case FuzzCallKind::append:
      return append_case(name, call.problem, call.append);
    case FuzzCallKind::merge:
      break;
  }
  return merge_case(name, call.problem, call.chunks);
}

}  // namespace attnjit::contract
