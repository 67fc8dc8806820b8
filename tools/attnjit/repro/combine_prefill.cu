// combine_prefill on partial results of random numbers, not of an attention kernel: two parts,
// whose states are N(0, 1) maxima and sums of one.
#include "kernel.cu"
#include "repro_support.h"

int main() {
  constexpr int num_splits = 2;
  constexpr int num_q_heads = repro_case::num_kv_heads * config::q_per_kv;
  constexpr long long rows = 1ll * repro_case::batch * repro_case::seqlen_q * num_q_heads;
  std::vector<PartialState> states(num_splits * rows);
  std::mt19937_64 random(repro_case::seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (PartialState& state : states) {
    state = {normal(random), 1.0f};
  }
  PrefillArguments arguments = {};
  arguments.out = repro::zeros(rows * config::head_dim_v * 4);
  arguments.lse = static_cast<float*>(repro::zeros(rows * 4));
  arguments.out_strides = {1ll * repro_case::seqlen_q * num_q_heads * config::head_dim_v,
                           1ll * num_q_heads * config::head_dim_v, config::head_dim_v};
  arguments.lse_strides = {1ll * num_q_heads * repro_case::seqlen_q, 1, repro_case::seqlen_q};
  arguments.out_scale = repro::ones(1);
  arguments.queries.extent = repro_case::seqlen_q;
  arguments.keys.extent = repro_case::seqlen_kv;
  arguments.rope_extent = config::head_dim_rope > 0 ? repro_case::seqlen_kv : 0;
  arguments.sinks = repro::random_floats(num_q_heads, 1.0f);
  arguments.partial_out = repro::random_floats(num_splits * rows * config::head_dim_v, 1.0f);
  arguments.partial_states = repro::upload(states);
  arguments.partial_rows = rows;
  arguments.num_splits = num_splits;
  arguments.batch = repro_case::batch;
  arguments.num_kv_heads = repro_case::num_kv_heads;
  constexpr int tile_rows = repro_case::seqlen_q * config::q_per_kv;
  constexpr int tiles = (tile_rows + config::block_m - 1) / config::block_m * repro_case::batch;
  constexpr int groups = config::block_m / (config::num_threads / 32);
  repro::launch(combine_prefill, dim3(tiles * groups, repro_case::num_kv_heads), arguments);
  repro::print_checksum("out", arguments.out,
                        rows * config::head_dim_v * repro::bytes_of(config::dtype_out));
  repro::print_checksum("lse", arguments.lse, rows * 4);
}
