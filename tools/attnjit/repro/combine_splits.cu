// combine_splits on partial results of random numbers, not of an attention kernel: every request
// has two pieces, whose states are N(0, 1) maxima and sums of one. It is launched by itself, so a
// config that overlaps the attention before it finds nothing to wait for.
#include "kernel.cu"
#include "repro_support.h"

int main() {
  constexpr int pieces_per_request = 2;
  constexpr int tile_rows = config::partial_rows;
  constexpr int rows_of_head = repro_case::seqlen_q * repro_case::q_per_kv;
  constexpr bool has_tile_per_row = config::partial_order == PartialOrder::rows;
  constexpr int tiles =
      has_tile_per_row ? rows_of_head : (rows_of_head + tile_rows - 1) / tile_rows;
  constexpr int num_q_heads = repro_case::num_kv_heads * repro_case::q_per_kv;
  constexpr long long rows = 1ll * repro_case::batch * repro_case::seqlen_q * num_q_heads;
  constexpr long long all_tiles =
      1ll * repro_case::batch * pieces_per_request * repro_case::num_kv_heads * tiles;
  constexpr int lines = lines_of_tile(tile_rows, config::head_dim_v);

  std::vector<int> offsets;
  for (int request = 0; request <= repro_case::batch; ++request) {
    offsets.push_back(request * pieces_per_request);
  }
  std::vector<PartialState> states(all_tiles * tile_rows);
  std::mt19937_64 random(repro_case::seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (PartialState& state : states) {
    state = {normal(random), 1.0f};
  }
  CombineArguments arguments = {};
  arguments.partial.out = static_cast<PartialValue*>(
      repro::random_tensor(config::dtype, all_tiles * lines * line_values, 1.0f));
  arguments.partial.states = repro::upload(states);
  arguments.partial.tiles = tiles;
  arguments.out = repro::zeros(rows * config::head_dim_v * 2);
  arguments.lse = static_cast<float*>(repro::zeros(rows * 4));
  arguments.piece_offsets = repro::upload(offsets);
  arguments.out_strides = {1ll * repro_case::seqlen_q * num_q_heads * config::head_dim_v,
                           1ll * num_q_heads * config::head_dim_v, config::head_dim_v};
  arguments.lse_strides = {1ll * num_q_heads * repro_case::seqlen_q, 1, repro_case::seqlen_q};
  arguments.batch = repro_case::batch;
  arguments.seqlen_q = repro_case::seqlen_q;
  arguments.num_kv_heads = repro_case::num_kv_heads;
  arguments.q_per_kv = repro_case::q_per_kv;
  arguments.lines_at_once = 1;
  arguments.warps_per_line = 1;
  arguments.sinks = repro::random_floats(num_q_heads, 1.0f);
  const long long warps = 1ll * repro_case::batch * repro_case::num_kv_heads * tiles * lines;
  const long long blocks = (warps + config::num_warps - 1) / config::num_warps;
  repro::launch(combine_splits, dim3(std::min<long long>(blocks, repro::num_sms())), arguments);
  repro::print_checksum("out", arguments.out, rows * config::head_dim_v * 2);
  repro::print_checksum("lse", arguments.lse, rows * 4);
}
