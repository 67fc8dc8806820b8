// append_kv_cache: writes seqlen_q new tokens of each request at its end, through a block table.
#include "kernel.cu"
#include "repro_support.h"

int main() {
  constexpr int heads = config::num_kv_heads;
  constexpr int pages = (repro_case::seqlen_kv + config::page_size - 1) / config::page_size;
  constexpr long long tokens = 1ll * repro_case::batch * repro_case::seqlen_q;
  constexpr long long cached = 1ll * repro_case::batch * pages * config::page_size;
  const auto rows_of = [&](int columns) {
    const long long row = 1ll * heads * columns;
    AppendedRows rows = {};
    rows.source = repro::random_tensor(config::dtype, tokens * row, 1.0f);
    rows.cache = repro::zeros(cached * row * repro::bytes_of(config::dtype_kv));
    rows.scale = repro::ones(1);
    rows.source_strides = {repro_case::seqlen_q * row, row, columns};
    rows.cache_strides = {0, config::page_size * row, columns, row};
    return rows;
  };
  std::vector<int> table;
  for (int page = 0; page < repro_case::batch * pages; ++page) {
    table.push_back(page);
  }
  AppendKvCacheArguments arguments = {};
  arguments.k = rows_of(config::head_dim_qk);
  if (config::head_dim_v > 0) {
    arguments.v = rows_of(config::head_dim_v);
  }
  NewTokenPlaces& places = arguments.places;
  places.seq_lens = repro::upload(std::vector<int>(repro_case::batch, repro_case::seqlen_kv));
  places.block_table = repro::upload(table);
  places.block_table_stride = pages;
  places.block_table_columns = pages;
  places.num_pages = 1ll * repro_case::batch * pages;
  places.slot_bytes = 4;
  places.batch = repro_case::batch;
  places.num_tokens = static_cast<int>(tokens);
  places.tokens_per_batch = repro_case::seqlen_q;
  const long long vectors = tokens * heads * (config::head_dim_qk + config::head_dim_v) / 8;
  repro::launch(append_kv_cache, dim3((vectors + config::num_threads - 1) / config::num_threads),
                arguments);
  repro::print_checksum("k_cache", arguments.k.cache,
                        cached * heads * config::head_dim_qk * repro::bytes_of(config::dtype_kv));
  if (config::head_dim_v > 0) {
    repro::print_checksum("v_cache", arguments.v.cache,
                          cached * heads * config::head_dim_v * repro::bytes_of(config::dtype_kv));
  }
}
