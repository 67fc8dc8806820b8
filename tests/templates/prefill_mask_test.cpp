// templates/device/key_interval.cuh and prefill_mask.cuh under the host compiler, for the mask of a
// case: a row tile walks over all keys that its rows see by the mask's definition, and leaves out
// the test of single keys only where every row sees every key.
#include "prefill_mask_problem.hpp"

#include <string>

#include <fmt/format.h>

#include "catch.hpp"

namespace {

// Whether each clause shows an interval of keys to a row, known without reading memory per key.
constexpr bool knows_places =
    !has_blocks && !reads_mask && !mask_has<MaskKind::document, MaskKind::custom>;
constexpr bool is_interval = knows_places && num_clauses == 1;

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
  return key < arguments.mask.segment_keys &&
         problem.q_segments.at(index(q_row + query)) == problem.kv_segments.at(index(kv_row + key));
}

// What prefill_config/device/user_slots.cuh says of the positions of a query and a key.
bool passes_predicate(const PrefillWork& work, int query, int head, int key) {
  const int query_position = work.key_position + work.query_place + query;
  const int key_position = work.key_position + key;
  const int sum = 5 * (num_requests - 1) + 3 * head + query_position + 2 * key_position +
                  work.seqlen_q + 7 * work.seqlen_kv;
  return sum % 4 != 0;
}

// By generator/README.md's table of masks.
bool is_shown(const Problem& problem, MaskKind kind, int query, int head, int key) {
  const PrefillWork& work = problem.work;
  const PrefillMask& mask = problem.arguments.mask;
  const int place = work.query_place + query;
  const int size = max(config::chunk_size, 1);
  const bool is_in_chunk = floor_of_quotient(place + work.key_position, size) ==
                           floor_of_quotient(key + work.key_position, size);
  const bool is_covered = key < mask.keys && query < mask.queries;
  const int draft = key - (work.seqlen_kv - work.seqlen_q);
  switch (kind) {
    case MaskKind::none:
    case MaskKind::composed:
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
    case MaskKind::custom:
      return passes_predicate(work, query, head, key);
  }
  return false;
}

// By all masks of a clause.
bool is_shown_by(int clause, const Problem& problem, int row, int key) {
  const int query = row / config::q_per_kv;
  const int head = problem.work.kv_head * config::q_per_kv + row % config::q_per_kv;
  for (int kind = 0; kind < static_cast<int>(MaskKind::composed); ++kind) {
    const bool is_asked = (mask_clauses.masks[clause] >> kind & 1) != 0;
    if (is_asked && !is_shown(problem, static_cast<MaskKind>(kind), query, head, key)) {
      return false;
    }
  }
  return true;
}

bool is_shown_by_any(const Problem& problem, int row, int key) {
  bool is_shown = false;
  for (int clause = 0; clause < mask_clauses.count; ++clause) {
    is_shown = is_shown || is_shown_by(clause, problem, row, key);
  }
  return is_shown;
}

bool is_visible(const Problem& problem, int row, int key) {
  const int query = row / config::q_per_kv;
  const int head = problem.work.kv_head * config::q_per_kv + row % config::q_per_kv;
  return key < problem.work.seqlen_kv && is_shown_by_any(problem, row, key) &&
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
  if constexpr (mask_is_additive) {
    const int head = problem.work.kv_head * config::q_per_kv + row % config::q_per_kv;
    const long long place = mask_place(problem, row / config::q_per_kv, head);
    return score + problem.numbers.at(index(place + key)) * log2_e;
  }
  return score;
}

// Whether some clause alone shows every row all keys of a tile.
bool is_shown_whole(const Problem& problem, int tile) {
  const int end_row = min(problem.work.first_row + config::block_m, problem.work.num_rows);
  const int end_key = (tile + 1) * config::block_n;
  for (int clause = 0; clause < mask_clauses.count; ++clause) {
    bool all = end_key <= problem.work.seqlen_kv;
    for (int row = problem.work.first_row; row < end_row; ++row) {
      for (int key = tile * config::block_n; key < end_key; ++key) {
        all = all && is_shown_by(clause, problem, row, key);
      }
    }
    if (all) {
      return true;
    }
  }
  return false;
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
  if (tile.is_full ? !all : knows_places && is_shown_whole(problem, tile.index)) {
    return fmt::format("tile {} is {}full", tile.index, tile.is_full ? "not " : "");
  }
  return knows_places && !any ? fmt::format("tile {} could be skipped", tile.index) : "";
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
        const KeyInterval keys = key_interval<0>(problem.arguments.mask, problem.work, query);
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

TEST_CASE("the parts of a split take every tile once, in order, " ATTNJIT_CASE_NAME) {
  for (const int first : {0, 5}) {
    for (int count = 0; count < 70; ++count) {
      for (const int parts : {1, 2, 3, 7, 32}) {
        int next = first;
        for (int part = 0; part < parts; ++part) {
          VisibleTiles tiles = {};
          tiles.first_tile = first;
          tiles.end_tile = first + count;
          take_part(tiles, parts, part);
          CHECK(tiles.first_tile == next);
          CHECK(tiles.end_tile >= tiles.first_tile);
          next = tiles.end_tile;
        }
        CHECK(next == first + count);
      }
    }
  }
}

}  // namespace
