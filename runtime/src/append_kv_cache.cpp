#include "attnjit/append_kv_cache.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "append_kv_cache_checks.hpp"
#include "attnjit/kernel_launch.hpp"
#include "cache_arguments.hpp"
#include "interface/append_kv_cache_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

constexpr std::int64_t elements_per_16_bytes = 8;
constexpr std::int64_t most_blocks = std::numeric_limits<int>::max();

AppendedRows appended_rows(const TensorView& source, const TensorView& cache,
                           const TensorView& scale, KvLayoutTag tag) {
  AppendedRows rows = {};
  rows.source = source.data;
  rows.cache = cache.data;
  rows.scale = static_cast<const float*>(scale.data);
  const std::size_t token = source.rank == 4 ? 1 : 0;
  rows.source_strides = {source.rank == 4 ? source.strides[0] : 0, source.strides.at(token),
                         source.strides.at(token + 1)};
  rows.cache_strides = cache_strides(cache, tag);
  if (scale.rank == 2) {
    rows.scale_strides = {scale.strides[0], scale.strides[1]};
  } else if (scale.rank == 1 && scale.shape[0] > 1) {
    rows.scale_strides.head = scale.strides[0];
  }
  return rows;
}

NewTokenPlaces new_token_places(const AppendKvCacheCall& call, const AppendSizes& sizes) {
  NewTokenPlaces places = {};
  places.new_offsets = static_cast<const int*>(call.new_offsets.data);
  places.seq_lens = static_cast<const int*>(call.seq_lens.data);
  places.block_table = static_cast<const int*>(call.block_table.data);
  places.slot_mapping = call.slot_mapping.data;
  places.block_table_stride = call.block_table.strides[0];
  places.num_pages = pages_of(call.k_cache);
  places.block_table_columns =
      static_cast<int>(std::min<std::int64_t>(call.block_table.shape[1], INT32_MAX));
  places.slot_bytes = size_bytes(call.slot_mapping.dtype);
  places.batch = static_cast<int>(sizes.batch);
  places.num_tokens = static_cast<int>(sizes.num_tokens);
  places.tokens_per_batch = static_cast<int>(sizes.tokens_per_batch);
  return places;
}

// Of the launch; throws ArgumentError if there are more than a grid has.
unsigned count_blocks(const AppendKvCacheConfig& config, const AppendKvCacheCall& call,
                      std::int64_t num_tokens) {
  const std::int64_t token_vectors = std::int64_t{config.num_kv_heads} *
                                     (config.head_dim_qk + config.head_dim_v) /
                                     elements_per_16_bytes;
  const std::int64_t blocks =
      (num_tokens * token_vectors + config.num_threads - 1) / config.num_threads;
  if (blocks > most_blocks) {
    TensorChecks checks;
    checks.add(
        "k_new", describe(call.k_new),
        fmt::format("must be at most {} tokens", most_blocks * config.num_threads / token_vectors),
        "write the tokens in several calls");
    checks.finish();
  }
  return static_cast<unsigned>(blocks);
}

}  // namespace

AttentionDescriptor append_kv_cache_descriptor(const AttentionDescriptor& attention) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::append_kv_cache;
  descriptor.dtype_q = descriptor.dtype_out = attention.dtype_q;
  descriptor.dtype_kv = attention.dtype_kv;
  descriptor.head_dim_qk = attention.head_dim_qk;
  descriptor.head_dim_v = attention.head_dim_v;
  descriptor.num_q_heads = descriptor.num_kv_heads = attention.num_kv_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout = attention.kv_layout;
  descriptor.kv_layout_tag = attention.kv_layout_tag;
  descriptor.page_size = attention.page_size;
  descriptor.value_source = attention.value_source;
  descriptor.scales_kv = attention.scales_kv;
  return descriptor;
}

void append_kv_cache(const PreparedAppend& kernel, const AppendKvCacheCall& call,
                     CUstream_st* stream) {
  const AppendSizes sizes = check_append_call(kernel.descriptor, call);
  if (sizes.num_tokens == 0) {
    return;
  }
  const KvLayoutTag tag = kernel.descriptor.kv_layout_tag;
  AppendKvCacheArguments arguments = {};
  arguments.k = appended_rows(call.k_new, call.k_cache, call.k_scale, tag);
  if (kernel.descriptor.value_source == ValueSource::separate) {
    arguments.v = appended_rows(call.v_new, call.v_cache, call.v_scale, tag);
  }
  arguments.places = new_token_places(call, sizes);
  launch(kernel.kernel, {.x = count_blocks(kernel.config, call, sizes.num_tokens)}, stream,
         &arguments);
}

}  // namespace attnjit
