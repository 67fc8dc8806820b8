#include "fuzz_cases.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "attnjit/mask_formula.hpp"
#include "fuzz_descriptors.hpp"
#include "fuzz_random.hpp"

namespace attnjit::check {
namespace {

// Around the edges of tiles, pages and chunks, and anything up to `most`.
int draw_length(FuzzRandom& random, int most) {
  const int kind = random.between(0, 3);
  if (kind == 0) {
    return std::min(most, random.between(0, 40));
  }
  if (kind == 1) {
    return random.between(0, most);
  }
  return std::min(most, random.pick({0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129,
                                     255, 256, 257}));
}

// What requests may still take of a case's bounds.
class Budget {
 public:
  explicit Budget(const AttentionDescriptor& descriptor)
      : q_heads_(descriptor.num_q_heads),
        query_width_(std::int64_t{descriptor.num_q_heads} * width(descriptor)),
        key_width_(std::int64_t{descriptor.num_kv_heads} * width(descriptor)) {}

  int take_queries(int queries) {
    const std::int64_t taken = std::min<std::int64_t>(queries, query_elements_ / query_width_);
    query_elements_ -= taken * query_width_;
    return static_cast<int>(taken);
  }

  // Of a request of `queries` query tokens.
  int take_keys(int keys, int queries) {
    const std::int64_t pairs_per_key = std::max<std::int64_t>(1, std::int64_t{queries} * q_heads_);
    const std::int64_t taken =
        std::min({std::int64_t{keys}, key_elements_ / key_width_, pairs_ / pairs_per_key});
    key_elements_ -= taken * key_width_;
    pairs_ -= queries > 0 ? taken * pairs_per_key : 0;
    return static_cast<int>(taken);
  }

 private:
  static int width(const AttentionDescriptor& descriptor) {
    return descriptor.head_dim_qk + descriptor.head_dim_v;
  }

  std::int64_t q_heads_;
  std::int64_t query_width_;
  std::int64_t key_width_;
  std::int64_t pairs_ = most_fuzz_pairs;
  std::int64_t query_elements_ = most_fuzz_query_elements;
  std::int64_t key_elements_ = most_fuzz_key_elements;
};

// Requests of a case, and the most tokens that one of them has.
struct BatchShape {
  int batch;
  int most_tokens;
};

BatchShape draw_batch(FuzzRandom& random, int most_tokens) {
  constexpr int most_of_many = 70;
  if (random.one_in(6)) {
    return {random.between(7, 60), most_of_many};
  }
  return {random.between(1, 6), most_tokens};
}

// Of N(0, 1) scores, tiny, 0, negative, and not a power of two.
std::optional<double> draw_softmax_scale(FuzzRandom& random) {
  if (!random.one_in(4)) {
    return std::nullopt;
  }
  return random.pick({1.352337788608801, -0.4, 1e-20, 0.0});
}

// fp16 holds little of outputs that a sink makes vanish, as a large one does of all heads, and an
// ordinary one may do of few.
SinkSize draw_sink_size(FuzzRandom& random, const AttentionDescriptor& descriptor) {
  using enum SinkSize;
  constexpr int few_heads = 8;
  if (descriptor.dtype_out != DataType::fp16) {
    return random.pick({ordinary, large, negative, infinite});
  }
  return descriptor.num_q_heads > few_heads ? random.pick({ordinary, negative, infinite})
                                            : random.pick({negative, infinite});
}

CacheArrangement draw_arrangement(FuzzRandom& random) {
  return random.pick(
      {CacheArrangement::pool, CacheArrangement::per_request, CacheArrangement::layered});
}

bool reads_mask(const AttentionDescriptor& descriptor) {
  return has_mask(descriptor, MaskKind::materialized_bool) ||
         has_mask(descriptor, MaskKind::materialized_additive) ||
         has_mask(descriptor, MaskKind::materialized_bits);
}

int longest(const std::vector<int>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

// Keys that a mask leaves out of the longest request's; one is left.
int draw_mask_shortage(FuzzRandom& random, const std::vector<int>& kv_lens) {
  return random.one_in(4) ? random.between(0, std::max(0, longest(kv_lens) - 1)) : 0;
}

DecodeCase draw_decode_case(FuzzRandom& random, const AttentionDescriptor& descriptor) {
  constexpr int most_keys = 6000;
  DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  Budget budget(descriptor);
  BatchShape shape = draw_batch(random, most_keys);
  const int queries =
      random.one_in(2) ? descriptor.max_seqlen_q : random.between(1, descriptor.max_seqlen_q);
  decode_case.seqlen_q = std::max(1, budget.take_queries(shape.batch * queries) / shape.batch);
  for (int b = 0; b < shape.batch; ++b) {
    const int keys = draw_length(random, shape.most_tokens);
    decode_case.seq_lens.push_back(budget.take_keys(keys, decode_case.seqlen_q));
  }
  decode_case.arrangement = draw_arrangement(random);
  decode_case.plan = random.pick({PlanSource::device, PlanSource::host, PlanSource::stale});
  decode_case.softmax_scale = draw_softmax_scale(random);
  decode_case.sinks = draw_sink_size(random, descriptor);
  if (reads_mask(descriptor)) {
    decode_case.mask_shortage = draw_mask_shortage(random, decode_case.seq_lens);
  }
  decode_case.seed = random.bits() >> 16;
  return decode_case;
}

void draw_lengths(FuzzRandom& random, PrefillCase& prefill_case) {
  constexpr int most_keys = 1200;
  constexpr int most_queries = 300;
  const int most_of_descriptor = prefill_case.descriptor.max_seqlen_q;
  Budget budget(prefill_case.descriptor);
  const BatchShape shape = draw_batch(random, most_keys);
  for (int b = 0; b < shape.batch; ++b) {
    int queries = draw_length(random, std::min(shape.most_tokens, most_queries));
    if (most_of_descriptor > 0) {
      queries = std::min(queries, most_of_descriptor);
    }
    queries = budget.take_queries(queries);
    const int keys = random.one_in(4) ? queries : draw_length(random, shape.most_tokens);
    prefill_case.q_lens.push_back(queries);
    prefill_case.kv_lens.push_back(budget.take_keys(keys, queries));
  }
}

void draw_positions(FuzzRandom& random, PrefillCase& prefill_case) {
  constexpr int first = -100;
  constexpr int last = 2000;
  for (std::vector<int>* positions : {&prefill_case.query_positions, &prefill_case.key_positions}) {
    if (random.one_in(4)) {
      for (int b = 0; b < prefill_case.batch(); ++b) {
        positions->push_back(random.between(first, last));
      }
    }
  }
  if (has_mask(prefill_case.descriptor, MaskKind::prefix_lm)) {
    for (const int keys : prefill_case.kv_lens) {
      prefill_case.prefix_lens.push_back(random.between(0, keys + 5));
    }
  }
}

// The host draws what a mask, bias or tree holds: of a large one the same for all heads, or
// requests.
void draw_mask_extents(FuzzRandom& random, PrefillCase& prefill_case) {
  using Heads = MaskExtents::Heads;
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  MaskExtents& extents = prefill_case.mask_extents;
  extents.has_batch = !random.one_in(4);
  const bool is_tree = has_mask(descriptor, MaskKind::tree);
  const bool has_bias = descriptor.score_modifier == ScoreModifier::additive_bias;
  if (!reads_mask(descriptor) && !is_tree && !has_bias) {
    extents.heads = random.pick({Heads::one, Heads::kv, Heads::q});
    return;
  }
  extents.has_queries = is_tree || !random.one_in(4);
  extents.heads = random.pick({Heads::one, Heads::q});
  const int columns = longest(is_tree && !has_bias ? prefill_case.q_lens : prefill_case.kv_lens);
  const std::int64_t rows =
      extents.has_queries ? longest(prefill_case.q_lens) + prefill_case.unowned_rows : 1;
  std::int64_t elements = rows * columns * (extents.has_batch ? prefill_case.batch() : 1);
  if (elements > most_fuzz_mask_elements) {
    extents.has_batch = false;
    elements = rows * columns;
  }
  if (elements * descriptor.num_q_heads > most_fuzz_mask_elements) {
    extents.heads = Heads::one;
  }
}

PrefillCase draw_prefill_case(FuzzRandom& random, const AttentionDescriptor& descriptor) {
  PrefillCase prefill_case;
  prefill_case.descriptor = descriptor;
  draw_lengths(random, prefill_case);
  draw_positions(random, prefill_case);
  prefill_case.query_layout =
      random.pick({QueryLayout::ragged, QueryLayout::bshd, QueryLayout::bhsd});
  prefill_case.arrangement = draw_arrangement(random);
  prefill_case.unowned_rows = random.pick({0, 0, 3, 5});
  prefill_case.rows_before = random.pick({0, 2, 63, 300});
  prefill_case.row_padding = random.pick({0, 0, 8, 16});
  prefill_case.segment_tokens = random.pick({1, 7, 40, 64, 200});
  draw_mask_extents(random, prefill_case);
  prefill_case.mask_shortage = draw_mask_shortage(random, prefill_case.kv_lens);
  prefill_case.blocks =
      random.pick({BlockPattern::random, BlockPattern::empty_rows, BlockPattern::all});
  prefill_case.block_shortage = random.pick({0, 0, 1, 3});
  prefill_case.sinks = draw_sink_size(random, descriptor);
  prefill_case.softcap = random.pick({0.5, 2.0, 30.0, 50.0});
  prefill_case.softmax_scale = draw_softmax_scale(random);
  prefill_case.seed = random.bits() >> 16;
  prefill_case.scales_share_heads = random.one_in(3);
  return prefill_case;
}

}  // namespace

FuzzCase make_fuzz_case(std::uint64_t seed, std::uint64_t index) {
  const AttentionDescriptor descriptor = make_fuzz_descriptor(seed, index / cases_per_descriptor);
  if (descriptor.operation == Operation::decode) {
    FuzzRandom random(seed, index, FuzzSubject::decode);
    return draw_decode_case(random, descriptor);
  }
  FuzzRandom random(seed, index, FuzzSubject::prefill);
  return draw_prefill_case(random, descriptor);
}

}  // namespace attnjit::check
