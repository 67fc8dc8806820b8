// templates/device/key_interval.cuh and prefill_mask.cuh under the host compiler, for the mask of a
// case: a row tile walks over all keys that its rows see by the mask's definition, and leaves out
// the test of single keys only where every row sees every key.
#include "host_warp.hpp"

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"

// Of one case only: other cases of this file are in the same program.
namespace ATTNJIT_CASE {
#include "device/prefill_mask.cuh"
}  // namespace ATTNJIT_CASE

namespace {

using namespace ATTNJIT_CASE;
using namespace ATTNJIT_CASE::attnjit::kernel_interface;

constexpr int num_kv_heads = 2;
constexpr int num_heads = num_kv_heads * config::q_per_kv;
constexpr int num_requests = 2;  // the second one is looked at
constexpr int first_query = 11;  // of its rows, where they are ragged
constexpr int first_key = 13;

// Which keys are an interval of those of a row, known without reading memory per key.
constexpr bool is_interval =
    !tiles_are_looked_up && !mask_is_materialized && config::mask != MaskKind::tree;

std::size_t index(long long value) {
  return static_cast<std::size_t>(value);
}

// Attention of one request and kv head, with all that any mask reads.
struct Problem {
  PrefillArguments arguments = {};
  PrefillWork work = {};
  std::vector<unsigned char> bytes;  // of a materialized mask or a tree
  std::vector<float> numbers;        // of an additive mask
  std::vector<int> prefix_lens;
  std::vector<int> q_segments;
  std::vector<int> kv_segments;
  std::vector<unsigned char> blocks;
  MaskStrides block_strides = {};              // of `blocks`
  std::vector<int> block_rows, block_columns;  // the same in compressed rows
};

int draw(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

// Strides of a tensor whose first dimensions may each serve all.
MaskStrides draw_strides(std::mt19937& random, int heads, int rows, int columns) {
  const auto or_zero = [&](long long stride) { return draw(random, 0, 2) == 0 ? 0 : stride; };
  return {or_zero(static_cast<long long>(heads) * rows * columns),
          or_zero(static_cast<long long>(rows) * columns), or_zero(columns), 1};
}

void draw_mask(std::mt19937& random, Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  constexpr bool is_bits =
      config::mask == MaskKind::materialized_bits || config::mask == MaskKind::tree;
  mask.queries = max(problem.work.seqlen_q + draw(random, -3, 3), 1);
  const int wanted =
      config::mask == MaskKind::tree ? problem.work.seqlen_q : problem.work.seqlen_kv;
  mask.keys = max(wanted + draw(random, -20, 20), 1);
  const int columns = is_bits ? (mask.keys + 7) / 8 : mask.keys;
  mask.keys = is_bits ? columns * 8 : mask.keys;
  mask.strides = draw_strides(random, num_heads, mask.queries, columns);
  const std::size_t size = index(num_requests * num_heads) * index(mask.queries * columns);
  if (mask.strides.query == 0) {
    mask.queries = 0x7fffffff;  // one for all
  }
  const int density = draw(random, 1, 8);
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_set = draw(random, 0, 8) < density;
    problem.bytes.push_back(static_cast<unsigned char>(is_bits  ? draw(random, 0, 255)
                                                       : is_set ? i % 255 + 1
                                                                : 0));
    problem.numbers.push_back(static_cast<float>(draw(random, -8, 8)));
  }
  mask.mask = config::mask == MaskKind::materialized_additive
                  ? static_cast<const void*>(problem.numbers.data())
                  : problem.bytes.data();
}

// Ids that rise, as those of packed documents, or are anything.
std::vector<int> draw_segments(std::mt19937& random, int size) {
  std::vector<int> segments;
  const bool are_ascending = draw(random, 0, 3) > 0;
  int segment = -1;
  for (int i = 0; i < size; ++i) {
    segment = are_ascending ? segment + (draw(random, 0, 29) == 0 ? 1 : 0) : draw(random, -1, 2);
    segments.push_back(segment);
  }
  return segments;
}

void draw_documents(std::mt19937& random, Problem& problem) {
  PrefillArguments& arguments = problem.arguments;
  static constexpr int some_offsets[num_requests + 1] = {};
  const PrefillWork& work = problem.work;
  problem.q_segments = draw_segments(random, first_query + num_requests * work.seqlen_q);
  problem.kv_segments = draw_segments(random, first_key + num_requests * (work.seqlen_kv + 5));
  arguments.mask.q_segments = problem.q_segments.data();
  arguments.mask.kv_segments = problem.kv_segments.data();
  arguments.queries.extent = work.seqlen_q;
  arguments.queries.offsets = draw(random, 0, 1) == 0 ? nullptr : some_offsets;
  arguments.keys.offsets = draw(random, 0, 1) == 0 ? nullptr : some_offsets;
  arguments.mask.kv_segment_stride = work.seqlen_kv + 5;
  const bool is_short = arguments.keys.offsets == nullptr && draw(random, 0, 3) == 0;
  arguments.mask.keys = is_short ? work.seqlen_kv - draw(random, 0, 20) : 0x7fffffff;
}

// One row of `blocks` after the other, whatever it belongs to.
void compress_blocks(Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  for (std::size_t i = 0; i < problem.blocks.size(); ++i) {
    const int column = static_cast<int>(i) % mask.key_blocks;
    if (column == 0) {
      problem.block_rows.push_back(static_cast<int>(problem.block_columns.size()));
    }
    if (problem.blocks[i] != 0) {
      problem.block_columns.push_back(column);
    }
  }
  problem.block_rows.push_back(static_cast<int>(problem.block_columns.size()));
  mask.blocks = nullptr;
  mask.block_rows = problem.block_rows.data();
  mask.block_columns = problem.block_columns.data();
  mask.block_strides = {problem.block_strides.batch / mask.key_blocks,
                        problem.block_strides.head / mask.key_blocks, 1, 0};
}

void draw_blocks(std::mt19937& random, Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  mask.query_blocks = max(problem.work.seqlen_q / layout_block + draw(random, 0, 1), 1);
  mask.key_blocks = max(problem.work.seqlen_kv / layout_block + draw(random, 0, 1), 1);
  const bool is_per_query_head = draw(random, 0, 1) == 0;
  mask.block_heads = is_per_query_head ? config::q_per_kv : 1;
  mask.block_strides = draw_strides(random, num_heads, mask.query_blocks, mask.key_blocks);
  mask.block_strides.query = mask.key_blocks;
  const int density = draw(random, 0, 4);
  for (int i = 0; i < num_requests * num_heads * mask.query_blocks * mask.key_blocks; ++i) {
    problem.blocks.push_back(static_cast<unsigned char>(draw(random, 0, 3) < density ? i : 0));
  }
  problem.block_strides = mask.block_strides;
  mask.blocks = problem.blocks.data();
  if (draw(random, 0, 1) == 0) {
    compress_blocks(problem);
  }
}

Problem draw_problem(std::mt19937& random) {
  Problem problem;
  PrefillWork& work = problem.work;
  work.request = num_requests - 1;
  work.kv_head = num_kv_heads - 1;
  work.seqlen_q = draw(random, 1, 70);
  work.seqlen_kv = draw(random, 0, 9) == 0 ? draw(random, 0, 1100) : draw(random, 0, 150);
  work.num_rows = work.seqlen_q * config::q_per_kv;
  work.first_query = first_query;
  work.first_key = first_key;
  work.key_position = draw(random, 0, 1) == 0 ? 0 : draw(random, -100, 100);
  work.query_place = work.seqlen_kv - work.seqlen_q;  // negative if queries have no key
  if (draw(random, 0, 1) == 0) {
    work.query_place = draw(random, -120, 200);
  }
  problem.prefix_lens = {-7, draw(random, -5, work.seqlen_kv + 20)};
  problem.arguments.mask.prefix_lens = problem.prefix_lens.data();
  if constexpr (mask_is_materialized || config::mask == MaskKind::tree) {
    draw_mask(random, problem);
  }
  if constexpr (has_segments) {
    draw_documents(random, problem);
  }
  if constexpr (has_blocks) {
    draw_blocks(random, problem);
  }
  return problem;
}

long long mask_place(const Problem& problem, int query, int head) {
  const MaskStrides& strides = problem.arguments.mask.strides;
  return problem.work.request * strides.batch + head * strides.head + query * strides.query;
}

int floor_of_quotient(int dividend, int divisor) {
  return static_cast<int>(std::floor(static_cast<double>(dividend) / divisor));
}

bool is_bit_set(const Problem& problem, int query, int head, int bit) {
  const int byte = problem.bytes.at(index(mask_place(problem, query, head) + bit / 8));
  return (byte & (1 << bit % 8)) != 0;
}

bool is_looked_at(const Problem& problem, int query, int head, int key) {
  const PrefillMask& mask = problem.arguments.mask;
  const int row = query / layout_block;
  const int column = key / layout_block;
  const int layout_head = mask.block_heads == 1 ? head / config::q_per_kv : head;
  return row < mask.query_blocks && column < mask.key_blocks &&
         problem.blocks.at(index(problem.work.request * problem.block_strides.batch +
                                 layout_head * problem.block_strides.head +
                                 row * problem.block_strides.query + column)) != 0;
}

bool has_equal_segments(const Problem& problem, int query, int key) {
  const PrefillArguments& arguments = problem.arguments;
  const PrefillWork& work = problem.work;
  const long long q_row =
      arguments.queries.offsets != nullptr ? first_query : work.request * work.seqlen_q;
  const long long kv_row = arguments.keys.offsets != nullptr
                               ? first_key
                               : work.request * arguments.mask.kv_segment_stride;
  return key < arguments.mask.keys &&
         problem.q_segments.at(index(q_row + query)) == problem.kv_segments.at(index(kv_row + key));
}

// By generator/README.md's table of masks.
bool is_shown(const Problem& problem, int query, int head, int key) {
  const PrefillWork& work = problem.work;
  const PrefillMask& mask = problem.arguments.mask;
  const int place = work.query_place + query;
  const int size = max(config::chunk_size, 1);
  const bool is_in_chunk = floor_of_quotient(place + work.key_position, size) ==
                           floor_of_quotient(key + work.key_position, size);
  const bool is_covered = key < mask.keys && query < mask.queries;
  const int draft = key - (work.seqlen_kv - work.seqlen_q);
  switch (config::mask) {
    case MaskKind::none:
      return true;
    case MaskKind::causal:
      return key <= place;
    case MaskKind::sliding_window:
      return (config::window_left < 0 || key >= place - config::window_left) &&
             (config::window_right < 0 || key <= place + config::window_right);
    case MaskKind::chunked:
      return is_in_chunk;
    case MaskKind::chunked_causal:
      return is_in_chunk && key <= place;
    case MaskKind::prefix_lm:
      return key <= place || key < problem.prefix_lens[index(work.request)];
    case MaskKind::document:
      return has_equal_segments(problem, query, key);
    case MaskKind::tree:
      return query < mask.queries &&
             (draft < 0 || (draft < mask.keys && is_bit_set(problem, query, head, draft)));
    case MaskKind::materialized_bool:
      return is_covered && problem.bytes.at(index(mask_place(problem, query, head) + key)) != 0;
    case MaskKind::materialized_additive:
      return is_covered;
    case MaskKind::materialized_bits:
      return is_covered && is_bit_set(problem, query, head, key);
  }
  return false;
}

bool is_visible(const Problem& problem, int row, int key) {
  const int query = row / config::q_per_kv;
  const int head = problem.work.kv_head * config::q_per_kv + row % config::q_per_kv;
  return key < problem.work.seqlen_kv && is_shown(problem, query, head, key) &&
         (!has_blocks || is_looked_at(problem, query, head, key));
}

struct Walk {
  VisibleTiles tiles;
  std::vector<FoundTile> found;
};

// As the kernel's main loop goes.
Walk walk_tiles(const Problem& problem) {
  const auto walks = host_warp::run_lanes([&] {
    Walk walk = {find_visible_tiles(problem.arguments, problem.work), {}};
    TileWalk tiles;
    FoundTile tile = tiles.find(problem.arguments, problem.work, walk.tiles, walk.tiles.first_tile);
    while (tile.index < walk.tiles.end_tile) {
      walk.found.push_back(tile);
      tile = tiles.find(problem.arguments, problem.work, walk.tiles, tile.index + 1);
    }
    return walk;
  });
  for (const Walk& walk : walks) {
    REQUIRE(walk.found.size() == walks[0].found.size());
  }
  return walks[0];
}

float expected_score(const Problem& problem, int row, int key, float score) {
  if (!is_visible(problem, row, key)) {
    return -INFINITY;
  }
  if constexpr (config::mask == MaskKind::materialized_additive) {
    const int head = problem.work.kv_head * config::q_per_kv + row % config::q_per_kv;
    const long long place = mask_place(problem, row / config::q_per_kv, head);
    return score + problem.numbers.at(index(place + key)) * log2_e;
  }
  return score;
}

// What the keys of a tile that is walked over come to, for the rows of `problem`'s row tile.
std::string find_fault_of_tile(const Problem& problem, const Walk& walk, const FoundTile& tile) {
  const int end_row = min(problem.work.first_row + config::block_m, problem.work.num_rows);
  bool all = true;
  bool any = false;
  for (int row = problem.work.first_row; row < problem.work.first_row + config::block_m; ++row) {
    const RowMask view = row_mask(problem.arguments, problem.work, row);
    for (int i = 0; i < config::block_n; ++i) {
      const int key = tile.index * config::block_n + i;
      const bool is_seen = row < end_row && is_visible(problem, row, key);
      const bool is_copied = key >= walk.tiles.first_key && key < walk.tiles.end_key;
      if (is_seen && !is_copied) {
        return fmt::format("row {} sees key {}, which is not copied", row, key);
      }
      if (!tile.is_full) {
        const float score = masked_score(problem.arguments, problem.work, view, key, 1.5F);
        const float expected = is_seen ? expected_score(problem, row, key, 1.5F) : -INFINITY;
        if (score != expected) {
          return fmt::format("row {} and key {}: {}, not {}", row, key, score, expected);
        }
      }
      all = all && (row >= end_row || is_seen);
      any = any || is_seen;
    }
  }
  if (tile.is_full ? !all : is_interval && all) {
    return fmt::format("tile {} is {}full", tile.index, tile.is_full ? "not " : "");
  }
  return is_interval && !any ? fmt::format("tile {} could be skipped", tile.index) : "";
}

// "" if the row tile from `problem.work.first_row` on is as the definition wants it.
std::string find_fault(const Problem& problem) {
  const Walk walk = walk_tiles(problem);
  std::vector<bool> is_walked(index(problem.work.seqlen_kv / config::block_n + 1), false);
  for (const FoundTile& tile : walk.found) {
    const std::string fault = find_fault_of_tile(problem, walk, tile);
    if (!fault.empty()) {
      return fault;
    }
    is_walked.at(index(tile.index)) = true;
  }
  const int end_row = min(problem.work.first_row + config::block_m, problem.work.num_rows);
  for (int key = 0; key < problem.work.seqlen_kv; ++key) {
    for (int row = problem.work.first_row; row < end_row; ++row) {
      if (!is_walked[index(key / config::block_n)] && is_visible(problem, row, key)) {
        return fmt::format("row {} sees key {}, which is skipped", row, key);
      }
    }
  }
  return "";
}

TEST_CASE("a row tile's keys are those that the mask shows, " ATTNJIT_CASE_NAME) {
  std::mt19937 random(5);
  std::vector<std::string> faults;
  for (int repetition = 0; repetition < 150; ++repetition) {
    Problem problem = draw_problem(random);
    PrefillWork& work = problem.work;
    for (; work.first_row < work.num_rows; work.first_row += config::block_m) {
      const std::string fault = find_fault(problem);
      if (!fault.empty() && faults.size() < 5) {
        faults.push_back(fmt::format("{} queries from place {}, {} keys from position {}: {}",
                                     work.seqlen_q, work.query_place, work.seqlen_kv,
                                     work.key_position, fault));
      }
    }
  }
  CHECK(faults == std::vector<std::string>{});
}

TEST_CASE("a row sees the interval of keys that its place says, " ATTNJIT_CASE_NAME) {
  if constexpr (is_interval) {
    std::mt19937 random(6);
    for (int repetition = 0; repetition < 300; ++repetition) {
      const Problem problem = draw_problem(random);
      KeyInterval before = {0, 0};
      for (int query = 0; query < problem.work.seqlen_q; ++query) {
        const KeyInterval keys = key_interval(problem.arguments.mask, problem.work, query);
        int misplaced = 0;
        for (int key = 0; key < problem.work.seqlen_kv + 9; ++key) {
          const bool is_inside = key >= keys.begin && key < keys.end;
          misplaced += is_inside != is_visible(problem, query * config::q_per_kv, key) ? 1 : 0;
        }
        CHECK(misplaced == 0);
        CHECK(keys.begin >= 0);
        CHECK((query == 0 || (keys.begin >= before.begin && keys.end >= before.end)));
        before = keys;
      }
    }
  }
}

}  // namespace
