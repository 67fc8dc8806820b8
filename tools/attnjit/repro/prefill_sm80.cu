// prefill_sm80 on dense queries and keys in rows or pages, of random numbers. Keys are not split.
// Masks that are read hold random bytes, biases random numbers; documents are 40 tokens long,
// prefixes half of the keys; a tree lets draft tokens see what random bits say; all blocks of a
// block-sparse layout are looked at; scales are one.
#include "kernel.cu"
#include "repro_support.h"

namespace {

constexpr int num_q_heads = repro_case::num_kv_heads * config::q_per_kv;
constexpr long long rows = 1ll * repro_case::batch * repro_case::seqlen_q * num_q_heads;
constexpr int plain_columns = config::head_dim_qk - config::head_dim_rope;

// Elements between requests, tokens and heads of [batch, tokens, heads, columns].
constexpr QueryStrides strides_of(int tokens, int heads, int columns) {
  return {1ll * tokens * heads * columns, 1ll * heads * columns, columns};
}

// Of keys of `heads` heads in pages of `page_size` tokens; 0: in rows of their own.
constexpr CacheStrides key_strides(int page_size, int heads, int columns) {
  const long long row = 1ll * heads * columns;
  return {page_size > 0 ? 0 : repro_case::seqlen_kv * row, page_size * row, columns, row};
}

constexpr int pages_of(int page_size) {
  return (repro_case::seqlen_kv + page_size - 1) / page_size;
}

constexpr long long key_rows(int page_size) {
  return 1ll * repro_case::batch *
         (page_size > 0 ? pages_of(page_size) * page_size : repro_case::seqlen_kv);
}

constexpr int paged_size = config::page_size > 0 ? config::page_size : config::rope_page_size;

void set_keys(PrefillArguments& arguments) {
  constexpr int heads = repro_case::num_kv_heads;
  arguments.k = repro::random_tensor(config::dtype_kv,
                                     key_rows(config::page_size) * heads * plain_columns, 0.1f);
  arguments.v = repro::random_tensor(
      config::dtype_kv, key_rows(config::page_size) * heads * config::head_dim_v, 0.1f);
  arguments.k_strides = key_strides(config::page_size, heads, plain_columns);
  arguments.v_strides = key_strides(config::page_size, heads, config::head_dim_v);
  if (config::head_dim_rope > 0) {
    arguments.k_rope = repro::random_tensor(
        config::dtype_rope, key_rows(config::rope_page_size) * config::head_dim_rope, 0.1f);
    arguments.rope_strides = key_strides(config::rope_page_size, 1, config::head_dim_rope);
    arguments.rope_extent = repro_case::seqlen_kv;
  }
  if (paged_size > 0) {
    std::vector<int> table;
    for (int page = 0; page < repro_case::batch * pages_of(paged_size); ++page) {
      table.push_back(page);
    }
    arguments.block_table = repro::upload(table);
    arguments.block_table_stride = pages_of(paged_size);
  }
}

void set_queries(PrefillArguments& arguments) {
  constexpr int columns = config::q_rope_apart ? plain_columns : config::head_dim_qk;
  arguments.q = repro::random_tensor(config::dtype_q, rows * columns, 1.0f);
  arguments.q_strides = strides_of(repro_case::seqlen_q, num_q_heads, columns);
  if (config::q_rope_apart) {
    arguments.q_rope = repro::random_tensor(config::dtype_rope, rows * config::head_dim_rope, 1.0f);
    arguments.q_rope_strides = strides_of(repro_case::seqlen_q, num_q_heads, config::head_dim_rope);
  }
  arguments.out = repro::zeros(rows * config::head_dim_v * 4);
  arguments.out_strides = strides_of(repro_case::seqlen_q, num_q_heads, config::head_dim_v);
  arguments.lse = static_cast<float*>(repro::zeros(rows * 4));
  arguments.lse_strides = {1ll * num_q_heads * repro_case::seqlen_q, 1, repro_case::seqlen_q};
  arguments.queries.extent = repro_case::seqlen_q;
  arguments.keys.extent = repro_case::seqlen_kv;
}

// Scale strides of 0: one scale serves all. There are enough ones for a row's blocks of columns.
void set_scales(PrefillArguments& arguments) {
  const float* scales = repro::ones(1024);
  arguments.q_scales.scales = scales;
  arguments.k_scales.scales = scales;
  arguments.v_scales.scales = scales;
  arguments.rope_scales.scales = scales;
  arguments.out_scale = scales;
}

// Documents of 40 tokens, counted from a request's first.
std::vector<int> segments(int tokens, int first) {
  std::vector<int> of_tokens;
  for (int request = 0; request < repro_case::batch; ++request) {
    for (int token = 0; token < tokens; ++token) {
      of_tokens.push_back((first + token) / 40);
    }
  }
  return of_tokens;
}

void set_mask(PrefillMask& mask) {
  constexpr long long pairs = 1ll * repro_case::seqlen_q * repro_case::seqlen_kv;
  constexpr MaskStrides strides = {0, 0, repro_case::seqlen_kv, 1};
  mask.mask = repro::random_tensor(config::dtype_mask, pairs, 1.0f);
  mask.strides = strides;
  mask.queries = repro_case::seqlen_q;
  mask.keys = repro_case::seqlen_kv;
  mask.prefix_lens = repro::upload(std::vector<int>(repro_case::batch, repro_case::seqlen_kv / 2));
  mask.q_segments =
      repro::upload(segments(repro_case::seqlen_q, repro_case::seqlen_kv - repro_case::seqlen_q));
  mask.kv_segments = repro::upload(segments(repro_case::seqlen_kv, 0));
  mask.kv_segment_stride = repro_case::seqlen_kv;
  mask.segment_keys = repro_case::seqlen_kv;
  mask.alibi_slopes = repro::random_floats(num_q_heads, 0.1f);
  mask.softcap = 30.0f;
  mask.bias = repro::random_tensor(config::dtype_bias, pairs, 1.0f);
  mask.bias_strides = strides;
  mask.bias_queries = repro_case::seqlen_q;
  mask.bias_keys = repro_case::seqlen_kv;
  if (config::sparsity_block > 0) {
    constexpr int block = config::sparsity_block > 0 ? config::sparsity_block : 1;
    mask.query_blocks = (repro_case::seqlen_q + block - 1) / block;
    mask.key_blocks = (repro_case::seqlen_kv + block - 1) / block;
    mask.blocks = repro::upload(std::vector<unsigned char>(
        static_cast<std::size_t>(mask.query_blocks) * mask.key_blocks, 1));
    mask.block_strides = {0, 0, mask.key_blocks, 1};
    mask.block_heads = 1;
  }
}

}  // namespace

int main() {
  PrefillArguments arguments = {};
  set_queries(arguments);
  set_keys(arguments);
  set_scales(arguments);
  set_mask(arguments.mask);
  arguments.sinks = repro::random_floats(num_q_heads, 1.0f);
  arguments.num_splits = 1;
  arguments.softmax_scale = repro_case::softmax_scale;
  arguments.batch = repro_case::batch;
  arguments.num_kv_heads = repro_case::num_kv_heads;
  constexpr int tile_rows = repro_case::seqlen_q * config::q_per_kv;
  constexpr int tiles = (tile_rows + config::block_m - 1) / config::block_m * repro_case::batch;
  repro::launch(prefill_sm80, dim3(tiles, repro_case::num_kv_heads, 1), arguments);
  repro::print_checksum("out", arguments.out,
                        rows * config::head_dim_v * repro::bytes_of(config::dtype_out));
  repro::print_checksum("lse", arguments.lse, rows * 4);
}
