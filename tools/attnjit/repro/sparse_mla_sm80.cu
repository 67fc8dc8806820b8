// sparse_mla_sm80 on a pool of tokens and lists of indices of random numbers. Bytes of an encoded
// pool are random too, with scales that are small numbers: not what an encoder would write.
#include "kernel.cu"
#include "repro_support.h"

int main() {
  constexpr int num_tokens = repro_case::batch * repro_case::seqlen_kv;
  constexpr int topk = repro_case::topk;
  constexpr int num_q_heads = repro_case::num_kv_heads * repro_case::q_per_kv;
  constexpr long long queries = 1ll * repro_case::batch * repro_case::seqlen_q;
  constexpr int row_bytes = config::kv_encoding == KvEncoding::plain     ? config::head_dim_qk * 2
                            : config::kv_encoding == KvEncoding::fp8_656 ? 656
                                                                         : 592;
  SparseMlaArguments arguments = {};
  arguments.q =
      repro::random_tensor(config::dtype, queries * num_q_heads * config::head_dim_qk, 1.0f);
  arguments.out = repro::zeros(queries * num_q_heads * config::head_dim_v * 2);
  arguments.lse = static_cast<float*>(repro::zeros(queries * num_q_heads * 4));
  arguments.max_logits = static_cast<float*>(repro::zeros(queries * num_q_heads * 4));
  arguments.q_strides = {1ll * repro_case::seqlen_q * num_q_heads * config::head_dim_qk,
                         1ll * num_q_heads * config::head_dim_qk, config::head_dim_qk};
  arguments.out_strides = {1ll * repro_case::seqlen_q * num_q_heads * config::head_dim_v,
                           1ll * num_q_heads * config::head_dim_v, config::head_dim_v};
  arguments.lse_strides = {1ll * num_q_heads * repro_case::seqlen_q, 1, repro_case::seqlen_q};
  arguments.max_logits_strides = arguments.lse_strides;
  arguments.pools[0].data =
      config::kv_encoding == KvEncoding::plain
          ? repro::random_tensor(config::dtype, 1ll * num_tokens * config::head_dim_qk, 0.1f)
          : repro::random_tensor(DataType::fp8_e4m3, 1ll * num_tokens * row_bytes, 1.0f);
  // Pages of one token: a token's scales follow its row, wherever its encoding has them.
  arguments.pools[0].page_stride = row_bytes;
  arguments.pools[0].row_stride = row_bytes;
  arguments.pools[0].num_tokens = num_tokens;
  arguments.pools[0].page_size = 1;
  arguments.pools[1].page_size = 1;
  std::mt19937_64 random(repro_case::seed);
  std::vector<int> indices(queries * topk);
  for (int& index : indices) {
    index = static_cast<int>(random() % num_tokens);
  }
  arguments.indices[0].indices = repro::upload(indices);
  arguments.indices[0].request_stride = 1ll * repro_case::seqlen_q * topk;
  arguments.indices[0].query_stride = topk;
  arguments.indices[0].count = topk;
  arguments.sinks = repro::random_floats(num_q_heads, 1.0f);
  arguments.softmax_scale = repro_case::softmax_scale;
  arguments.seqlen_q = repro_case::seqlen_q;
  arguments.num_q_heads = num_q_heads;
  arguments.is_aligned_16 = 1;
  constexpr int head_tiles = (num_q_heads + config::block_m - 1) / config::block_m;
  repro::launch(sparse_mla_sm80, dim3(head_tiles * queries), arguments);
  repro::print_checksum("out", arguments.out, queries * num_q_heads * config::head_dim_v * 2);
  repro::print_checksum("lse", arguments.lse, queries * num_q_heads * 4);
  repro::print_checksum("max_logits", arguments.max_logits, queries * num_q_heads * 4);
}
