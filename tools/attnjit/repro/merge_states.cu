// merge_states: two attention results of random numbers over parts of the keys, merged.
#include "kernel.cu"
#include "repro_support.h"

int main() {
  constexpr int num_q_heads = repro_case::num_kv_heads * repro_case::q_per_kv;
  constexpr long long tokens = 1ll * repro_case::batch * repro_case::seqlen_q;
  constexpr long long rows = tokens * num_q_heads;
  MergeStatesArguments arguments = {};
  arguments.strides = {1ll * num_q_heads * config::head_dim_v, config::head_dim_v, num_q_heads, 1};
  arguments.num_partials = 2;
  for (int i = 0; i < arguments.num_partials; ++i) {
    arguments.partials[i] = {repro::random_tensor(config::dtype, rows * config::head_dim_v, 1.0f),
                             repro::random_floats(rows, 1.0f), arguments.strides};
  }
  arguments.out = repro::zeros(rows * config::head_dim_v * 4);
  arguments.lse = static_cast<float*>(repro::zeros(rows * 4));
  arguments.num_rows = rows;
  arguments.num_heads = num_q_heads;
  constexpr int rows_per_block = config::num_threads / (config::head_dim_v / 8);
  repro::launch(merge_states, dim3((rows + rows_per_block - 1) / rows_per_block), arguments);
  repro::print_checksum("out", arguments.out,
                        rows * config::head_dim_v * repro::bytes_of(config::dtype));
  repro::print_checksum("lse", arguments.lse, rows * 4);
}
