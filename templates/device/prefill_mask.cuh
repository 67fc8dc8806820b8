// The masks of kernels/prefill_sm80.cu: which tiles of keys a row tile skips, which it sees whole,
// and the test of single scores in those between.
#pragma once

#include "device/key_interval.cuh"
#include "device/numeric_types.cuh"
#include "device/prefill_block.cuh"
#include "device/softmax_math.cuh"
#include "device/user_slots.cuh"

constexpr bool has_blocks = config::sparsity_block > 0;
constexpr int layout_block = has_blocks ? config::sparsity_block : 1;  // tokens
constexpr bool has_segments = mask_has<MaskKind::document>;
constexpr bool tiles_are_looked_up = has_blocks || has_segments || num_clauses > 1;

// Whether a clause tells no tile that is seen whole, for each key is asked about.
template <int clause>
constexpr bool asks_about_keys =
    clause_is_materialized<clause> || clause_has<clause, MaskKind::custom>;

// What the rows of a thread block see together.
struct VisibleTiles {
  int first_query;
  int last_query;
  int first_key;  // that any row may see
  int end_key;
  int first_tile;
  int end_tile;
  int full_begin;  // keys [full_begin, full_end) are in the interval of every row, by one clause
  int full_end;
  int first_segment;  // least and largest id of the rows, of a document mask
  int last_segment;
};

// A tile of keys, and whether every row sees all of it.
struct FoundTile {
  int index;
  bool is_full;
};

__device__ __forceinline__ const int* q_segments_of(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work) {
  const long long first = arguments.queries.offsets != nullptr
                              ? work.first_query
                              : static_cast<long long>(work.request) * arguments.queries.extent;
  return arguments.mask.q_segments + first;
}

__device__ __forceinline__ const int* kv_segments_of(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work) {
  const long long first = arguments.keys.offsets != nullptr
                              ? work.first_key
                              : work.request * arguments.mask.kv_segment_stride;
  return arguments.mask.kv_segments + first;
}

// Keys that queries [first_query, last_query] all see by the places of keys, as far as the masks of
// a clause go.
template <int clause>
__device__ __forceinline__ KeyInterval
full_interval(const attnjit::kernel_interface::PrefillMask& mask, const PrefillWork& work,
              int first_query, int last_query) {
  KeyInterval keys = {key_interval<clause>(mask, work, last_query).begin,
                      key_interval<clause>(mask, work, first_query).end};
  if constexpr (clause_has<clause, MaskKind::tree>) {
    const bool is_covered = last_query < mask.queries;
    keys.end = is_covered ? min(keys.end, work.seqlen_kv - work.seqlen_q) : 0;
  }
  return keys;
}

__device__ __forceinline__ VisibleTiles find_visible_tiles(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work) {
  VisibleTiles tiles = {};
  tiles.first_query = query_of(work.first_row);
  tiles.last_query = query_of(min(work.first_row + config::block_m, work.num_rows) - 1);
  tiles.first_key = joined_interval(arguments.mask, work, tiles.first_query).begin;
  tiles.end_key = joined_interval(arguments.mask, work, tiles.last_query).end;
  tiles.first_tile = tiles.first_key / config::block_n;
  tiles.end_tile = tiles.end_key > tiles.first_key ? (tiles.end_key - 1) / config::block_n + 1
                                                   : tiles.first_tile;
  const KeyInterval full =
      full_interval<0>(arguments.mask, work, tiles.first_query, tiles.last_query);
  tiles.full_begin = full.begin;
  tiles.full_end = full.end;
  if constexpr (has_segments) {
    const int* segments = q_segments_of(arguments, work);
    int least = 0x7fffffff;
    int largest = -0x7fffffff - 1;
    for (int i = tiles.first_query + threadIdx.x % 32; i <= tiles.last_query; i += 32) {
      least = min(least, segments[i]);
      largest = max(largest, segments[i]);
    }
    tiles.first_segment = __reduce_min_sync(0xffffffffu, least);
    tiles.last_segment = __reduce_max_sync(0xffffffffu, largest);
  }
  return tiles;
}

// Leaves part `part` of `parts` equal ones.
__device__ __forceinline__ void take_part(VisibleTiles& tiles, int parts, int part) {
  const int size = (tiles.end_tile - tiles.first_tile + parts - 1) / parts;
  tiles.first_tile = min(tiles.first_tile + part * size, tiles.end_tile);
  tiles.end_tile = min(tiles.first_tile + size, tiles.end_tile);
}

// Whether some, and whether all, pairs of a row and a key of a tile pass a test.
struct Passing {
  bool any;
  bool all;
};

// Of keys [first, end).
__device__ __forceinline__ Passing
segments_of_keys(const attnjit::kernel_interface::PrefillArguments& arguments,
                 const PrefillWork& work, const VisibleTiles& tiles, int first, int end) {
  const int* segments = kv_segments_of(arguments, work);
  int least = 0x7fffffff;
  int largest = -0x7fffffff - 1;
  for (int key = first; key < end; ++key) {
    least = min(least, segments[key]);
    largest = max(largest, segments[key]);
  }
  return {least <= tiles.last_segment && largest >= tiles.first_segment,
          least == largest && tiles.first_segment == tiles.last_segment &&
              least == tiles.first_segment};
}

// Whether the ascending numbers columns[begin] to columns[end - 1] hold `column`.
__device__ __forceinline__ bool holds_column(const int* columns, int begin, int end, int column) {
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    const int found = columns[middle];
    if (found == column)
      return true;
    begin = found < column ? middle + 1 : begin;
    end = found < column ? end : middle;
  }
  return false;
}

__device__ __forceinline__ bool looks_at_block(const attnjit::kernel_interface::PrefillMask& mask,
                                               const PrefillWork& work, int head, int query_block,
                                               int key_block) {
  if (query_block >= mask.query_blocks || key_block >= mask.key_blocks)
    return false;
  const long long row = work.request * mask.block_strides.batch +
                        (mask.block_heads == 1 ? work.kv_head : head) * mask.block_strides.head +
                        query_block * mask.block_strides.query;
  if (mask.blocks == nullptr) {
    return holds_column(mask.block_columns, mask.block_rows[row],
                        mask.block_rows[row + mask.block_strides.query], key_block);
  }
  return mask.blocks[row + key_block * mask.block_strides.key] != 0;
}

__device__ __forceinline__ Passing
blocks_of_tile(const attnjit::kernel_interface::PrefillMask& mask, const PrefillWork& work,
               const VisibleTiles& tiles, int tile) {
  const int first = max(tile * config::block_n, tiles.first_key) / layout_block;
  const int last = (min((tile + 1) * config::block_n, tiles.end_key) - 1) / layout_block;
  Passing passing = {false, true};
  for (int row = tiles.first_query / layout_block; row <= tiles.last_query / layout_block; ++row) {
    for (int head = 0; head < mask.block_heads; ++head) {
      for (int column = first; column <= last; ++column) {
        const bool is_looked_at =
            looks_at_block(mask, work, work.kv_head * config::q_per_kv + head, row, column);
        passing.any |= is_looked_at;
        passing.all &= is_looked_at;
      }
    }
  }
  return passing;
}

// By the masks of one clause, of a tile that some row may see.
template <int clause>
__device__ __forceinline__ Passing
clause_of_tile(const attnjit::kernel_interface::PrefillArguments& arguments,
               const PrefillWork& work, const VisibleTiles& tiles, int tile) {
  int first = max(tile * config::block_n, tiles.first_key);
  int end = min((tile + 1) * config::block_n, tiles.end_key);
  Passing passing = {true, true};
  if constexpr (num_clauses > 1) {  // of which each has an interval of its own
    const KeyInterval full =
        full_interval<clause>(arguments.mask, work, tiles.first_query, tiles.last_query);
    first = max(first, key_interval<clause>(arguments.mask, work, tiles.first_query).begin);
    end = min(end, key_interval<clause>(arguments.mask, work, tiles.last_query).end);
    passing = {first < end, !asks_about_keys<clause> && tile * config::block_n >= full.begin &&
                                (tile + 1) * config::block_n <= full.end};
  }
  if constexpr (clause_has<clause, MaskKind::document>) {
    if (passing.any) {
      const Passing segments = segments_of_keys(arguments, work, tiles, first, end);
      passing = {segments.any, passing.all && segments.all};
    }
  }
  return passing;
}

template <int clause = 0>
__device__ __forceinline__ Passing
clauses_of_tile(const attnjit::kernel_interface::PrefillArguments& arguments,
                const PrefillWork& work, const VisibleTiles& tiles, int tile) {
  Passing passing = clause_of_tile<clause>(arguments, work, tiles, tile);
  if constexpr (clause + 1 < num_clauses) {
    const Passing others = clauses_of_tile<clause + 1>(arguments, work, tiles, tile);
    passing = {passing.any || others.any, passing.all || others.all};
  }
  return passing;
}

// Walks over the tiles that a row tile does not skip. Where memory must be read to know, or several
// clauses be asked, a lane does it for a tile, 32 tiles at a time; every warp comes to the same
// result.
struct TileWalk {
  int looked_up = -32;  // first of the 32 tiles looked up last
  unsigned any = 0;
  unsigned all = 0;

  __device__ __forceinline__ void look_up(
      const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
      const VisibleTiles& tiles, int first) {
    const int tile = first + static_cast<int>(threadIdx.x % 32);
    Passing passing = {tile < tiles.end_tile, true};
    if (passing.any)
      passing = clauses_of_tile(arguments, work, tiles, tile);
    if (has_blocks && passing.any) {
      const Passing blocks = blocks_of_tile(arguments.mask, work, tiles, tile);
      passing = {blocks.any, passing.all && blocks.all};
    }
    looked_up = first;
    any = __ballot_sync(0xffffffffu, passing.any);
    all = __ballot_sync(0xffffffffu, passing.all);
  }

  // The first tile from `tile` on that some row sees; end_tile if there is none.
  __device__ __forceinline__ FoundTile
  find(const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
       const VisibleTiles& tiles, int tile) {
    bool passes_all = true;
    if constexpr (tiles_are_looked_up) {
      while (tile < tiles.end_tile) {
        if (tile - looked_up >= 32)
          look_up(arguments, work, tiles, tile);
        const unsigned left = any >> (tile - looked_up);
        if (left != 0) {
          tile += __ffs(left) - 1;
          passes_all = all >> (tile - looked_up) & 1;
          break;
        }
        tile = looked_up + 32;
      }
      tile = min(tile, tiles.end_tile);
    }
    if constexpr (num_clauses > 1)
      return {tile, passes_all};
    const bool is_full = !asks_about_keys<0> && passes_all &&
                         tile * config::block_n >= tiles.full_begin &&
                         (tile + 1) * config::block_n <= tiles.full_end;
    return {tile, is_full};
  }
};

// One row's view of the keys of a tile that not every row sees whole.
struct RowMask {
  KeyInterval keys[num_clauses];
  int query;
  int head;
  long long mask_row;  // of a materialized mask, or of a tree's
  int segment;
};

template <int clause>
constexpr bool clause_reads_mask =
    clause_is_materialized<clause> || clause_has<clause, MaskKind::tree>;
constexpr bool reads_mask = mask_has<MaskKind::materialized_bool, MaskKind::materialized_additive,
                                     MaskKind::materialized_bits, MaskKind::tree>;

// Of every clause but those whose mask in memory does not cover the query: they show it nothing.
template <int clause = 0>
__device__ __forceinline__ void set_intervals(const attnjit::kernel_interface::PrefillMask& mask,
                                              const PrefillWork& work, RowMask& view) {
  if (!clause_reads_mask<clause> || view.query < mask.queries)
    view.keys[clause] = key_interval<clause>(mask, work, view.query);
  if constexpr (clause + 1 < num_clauses)
    set_intervals<clause + 1>(mask, work, view);
}

__device__ __forceinline__ RowMask
row_mask(const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
         int row) {
  RowMask view = {};
  view.query = query_of(row);
  view.head = head_of(work, row);
  constexpr bool needs_mask = num_clauses == 1 && reads_mask;
  if (row >= work.num_rows || (needs_mask && view.query >= arguments.mask.queries))
    return view;  // sees nothing
  set_intervals(arguments.mask, work, view);
  const attnjit::kernel_interface::MaskStrides& strides = arguments.mask.strides;
  if constexpr (reads_mask) {
    view.mask_row =
        work.request * strides.batch + view.head * strides.head + view.query * strides.query;
  }
  if constexpr (has_segments)
    view.segment = q_segments_of(arguments, work)[view.query];
  return view;
}

__device__ __forceinline__ bool bit_is_set(const void* bits, long long row, int bit) {
  return static_cast<const unsigned char*>(bits)[row + bit / 8] >> bit % 8 & 1;
}

// The score of the row and `key`: -inf where the row does not see it, by this clause or a later
// one. A function for the test alone would cost instructions.
template <int clause = 0>
__device__ __forceinline__ float masked_score(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
    const RowMask& view, int key, float score) {
  constexpr bool asks_blocks_first = has_blocks && num_clauses > 1;  // once for all clauses
  if constexpr (asks_blocks_first && clause == 0) {
    if (!looks_at_block(arguments.mask, work, view.head, view.query / layout_block,
                        key / layout_block))
      return negative_infinity();
  }
  bool is_visible = key >= view.keys[clause].begin && key < view.keys[clause].end;
  if constexpr (clause_has<clause, MaskKind::materialized_bool>) {
    is_visible = is_visible &&
                 static_cast<const unsigned char*>(
                     arguments.mask.mask)[view.mask_row + key * arguments.mask.strides.key] != 0;
  }
  if constexpr (clause_has<clause, MaskKind::materialized_bits>)
    is_visible = is_visible && bit_is_set(arguments.mask.mask, view.mask_row, key);
  if constexpr (clause_has<clause, MaskKind::tree>) {
    const int draft = key - (work.seqlen_kv - work.seqlen_q);
    is_visible =
        is_visible && (draft < 0 || (draft < arguments.mask.keys &&
                                     bit_is_set(arguments.mask.mask, view.mask_row, draft)));
  }
  if constexpr (clause_has<clause, MaskKind::document>) {
    is_visible = is_visible && kv_segments_of(arguments, work)[key] == view.segment;
  }
  if constexpr (clause_has<clause, MaskKind::custom>) {
    const int position = work.query_place + view.query + work.key_position;
    is_visible =
        is_visible && mask_predicate(work.request, view.head, position, key + work.key_position,
                                     work.seqlen_q, work.seqlen_kv);
  }
  if constexpr (has_blocks && !asks_blocks_first) {
    is_visible = is_visible && looks_at_block(arguments.mask, work, view.head,
                                              view.query / layout_block, key / layout_block);
  }
  if (!is_visible) {
    if constexpr (clause + 1 < num_clauses)
      return masked_score<clause + 1>(arguments, work, view, key, score);
    return negative_infinity();
  }
  if constexpr (mask_is_additive) {
    score += log2_e * load_float<config::dtype_mask>(
                          arguments.mask.mask, view.mask_row + key * arguments.mask.strides.key);
  }
  return score;
}
