// What the mains of decode share: a paged cache, queries, a schedule of one wave, and room for
// partial results.
#pragma once

#include <algorithm>

#include "interface/paged_decode_arguments.h"
#include "repro_support.h"

namespace repro {

using namespace attnjit::kernel_interface;

struct Schedule {
  std::vector<SchedulePart> parts;
  std::vector<int> piece_offsets;  // [batch + 1]
};

inline Schedule cut_evenly(int num_parts, int block_n, int window_left) {
  std::vector<long long> units = {0};
  for (int request = 0; request < repro_case::batch; ++request) {
    const int length =
        visible_length(repro_case::seqlen_kv, repro_case::seqlen_q, window_left, block_n);
    units.push_back(units.back() + request_units(length, block_n));
  }
  const long long per_part = units_per_part(units.back(), num_parts);
  Schedule schedule;
  schedule.piece_offsets = {0};
  for (int request = 0; request < repro_case::batch; ++request) {
    const int pieces = num_pieces_of(units[request], units[request + 1], per_part);
    schedule.piece_offsets.push_back(schedule.piece_offsets.back() + (pieces > 1 ? pieces : 0));
  }
  for (int part = 0; part < num_parts; ++part) {
    schedule.parts.push_back(make_part(units.data(), repro_case::batch, per_part, part));
  }
  return schedule;
}

constexpr int pages_per_request(int page_size) {
  return (repro_case::seqlen_kv + page_size - 1) / page_size;
}

// Page p of request b is page b * pages + p of the pool.
inline const int* make_block_table(int page_size) {
  std::vector<int> table(static_cast<std::size_t>(repro_case::batch) *
                         pages_per_request(page_size));
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<int>(i);
  }
  return upload(table);
}

// [pages, page_size, num_kv_heads, columns]
constexpr CacheStrides paged_strides(int page_size, int columns) {
  const long long row = static_cast<long long>(repro_case::num_kv_heads) * columns;
  return {0, page_size * row, columns, row};
}

constexpr long long paged_elements(int page_size, int columns) {
  return static_cast<long long>(repro_case::batch) * pages_per_request(page_size) * page_size *
         repro_case::num_kv_heads * columns;
}

// [batch, seqlen_q, num_q_heads, columns]
constexpr QueryStrides query_strides(int num_q_heads, int columns) {
  const long long token = static_cast<long long>(num_q_heads) * columns;
  return {repro_case::seqlen_q * token, token, columns};
}

struct DecodeProblem {
  static constexpr int num_q_heads = repro_case::num_kv_heads * config::q_per_kv;
  static constexpr long long rows =
      static_cast<long long>(repro_case::batch) * repro_case::seqlen_q * num_q_heads;
  int row_tiles = 0;
  int num_parts = 0;
  long long partial_out_bytes = 0;
  long long partial_states_bytes = 0;
  PagedDecodeArguments arguments = {};

  // Tiles of block_m rows; partial results in tiles of partial_rows.
  DecodeProblem(int block_m, int block_n, int partial_rows, bool tile_per_row, DataType mask_type) {
    const int tile_rows = repro_case::seqlen_q * config::q_per_kv;
    row_tiles = (tile_rows + block_m - 1) / block_m;
    num_parts = std::max(1, num_sms() / (row_tiles * repro_case::num_kv_heads));
    const Schedule schedule = cut_evenly(num_parts, block_n, config::window_left);
    arguments.parts = upload(schedule.parts);
    arguments.piece_offsets = upload(schedule.piece_offsets);
    arguments.seq_lens = upload(std::vector<int>(repro_case::batch, repro_case::seqlen_kv));
    arguments.block_table = make_block_table(config::page_size);
    arguments.block_table_stride = pages_per_request(config::page_size);
    arguments.block_table_columns = pages_per_request(config::page_size);
    fill_tensors(mask_type);
    arguments.partial.tiles = tile_per_row ? tile_rows : row_tiles;
    const long long tiles = 2ll * num_parts * repro_case::num_kv_heads * arguments.partial.tiles;
    partial_out_bytes = tiles * lines_of_tile(partial_rows, config::head_dim_v) * line_values * 2;
    partial_states_bytes = tiles * partial_rows * static_cast<long long>(sizeof(PartialState));
    arguments.partial.out = static_cast<PartialValue*>(zeros(partial_out_bytes));
    arguments.partial.states = static_cast<PartialState*>(zeros(partial_states_bytes));
  }

  void fill_tensors(DataType mask_type) {
    arguments.q = random_tensor(config::dtype, rows * config::head_dim_qk, 1.0f);
    arguments.k_cache =
        random_tensor(config::dtype, paged_elements(config::page_size, config::head_dim_qk), 0.1f);
    arguments.v_cache =
        random_tensor(config::dtype, paged_elements(config::page_size, config::head_dim_v), 0.1f);
    arguments.mask = random_tensor(
        mask_type, static_cast<long long>(repro_case::seqlen_q) * repro_case::seqlen_kv, 1.0f);
    arguments.out = zeros(rows * config::head_dim_v * 2);
    arguments.lse = static_cast<float*>(zeros(rows * 4));
    arguments.q_strides = query_strides(num_q_heads, config::head_dim_qk);
    arguments.out_strides = query_strides(num_q_heads, config::head_dim_v);
    arguments.lse_strides = {static_cast<long long>(num_q_heads) * repro_case::seqlen_q, 1,
                             repro_case::seqlen_q};
    arguments.k_strides = paged_strides(config::page_size, config::head_dim_qk);
    arguments.v_strides = paged_strides(config::page_size, config::head_dim_v);
    arguments.mask_strides = {0, 0, repro_case::seqlen_kv, 1};
    arguments.mask_keys = repro_case::seqlen_kv;
    arguments.seqlen_q = repro_case::seqlen_q;
    arguments.num_kv_heads = repro_case::num_kv_heads;
    arguments.softmax_scale = repro_case::softmax_scale;
    arguments.sinks = random_floats(num_q_heads, 1.0f);
  }

  dim3 grid() const { return dim3(row_tiles, repro_case::num_kv_heads, num_parts); }

  // Of a request that is cut into pieces the kernel writes partial results alone, of the others out
  // and lse alone: what it leaves is zero.
  void print() const {
    print_checksum("out", arguments.out, rows * config::head_dim_v * 2);
    print_checksum("lse", arguments.lse, rows * 4);
    print_checksum("partial out", arguments.partial.out, partial_out_bytes);
    print_checksum("partial states", arguments.partial.states, partial_states_bytes);
  }
};

}  // namespace repro
