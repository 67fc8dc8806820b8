#include "attnjit/flash_mla.hpp"

#include <algorithm>
#include <cmath>

#include "attnjit/config_selection.hpp"
#include "flash_mla_checks.hpp"
#include "host_schedule.hpp"

namespace attnjit {
namespace {

constexpr int block_size = 64;

TargetDevice target_of(const MlaMetadataOptions& options) {
  return options.target.num_sms > 0 ? options.target : find_target_device("h200").value();
}

AttentionDescriptor descriptor_of(std::span<const std::int64_t> q_shape,
                                  std::span<const std::int64_t> kv_shape,
                                  const MlaMetadataOptions& options) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::decode;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = options.dtype;
  descriptor.head_dim_qk = static_cast<int>(q_shape[3]);
  descriptor.head_dim_v =
      options.head_dim_v != 0 ? options.head_dim_v : static_cast<int>(kv_shape[4]);
  descriptor.num_q_heads = static_cast<int>(q_shape[1]);
  descriptor.num_kv_heads = static_cast<int>(kv_shape[1]);
  descriptor.max_seqlen_q = static_cast<int>(q_shape[2]);
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  descriptor.page_size = block_size;
  descriptor.value_source = options.value_source;
  descriptor.mask = options.mask;
  descriptor.dtype_mask = options.dtype_mask;
  descriptor.batch_invariant = options.batch_invariant;
  return descriptor;
}

// That a request of the cache can have.
int most_keys(const MlaMetadata& metadata) {
  return static_cast<int>(
      std::min<std::int64_t>(std::int64_t{metadata.num_blocks} * block_size, INT32_MAX));
}

void plan_split(MlaMetadata& metadata, const TargetDevice& target) {
  const auto configs = select_configs(metadata.descriptor, target);
  const DecodeTile tile = decode_tile(configs.front());
  metadata.grid =
      make_decode_grid(tile, target, metadata.descriptor.num_kv_heads, metadata.seqlen_q);
  const auto& config = std::get<ScheduleConfig>(configs.back());
  if (metadata.descriptor.batch_invariant) {
    metadata.grid = with_chunks(metadata.grid, config, metadata.batch, most_keys(metadata));
  }
  const HostSchedule schedule =
      make_host_schedule(metadata.seq_lens, metadata.seqlen_q, config, metadata.grid);
  for (std::size_t b = 0; b < metadata.seq_lens.size(); ++b) {
    const int pieces = schedule.piece_offsets[b + 1] - schedule.piece_offsets[b];
    metadata.pieces_per_request.push_back(std::max(1, pieces));
  }
}

}  // namespace

MlaMetadata get_mla_metadata(std::span<const std::int64_t> q_shape,
                             std::span<const std::int64_t> kv_shape, const TensorView& block_table,
                             std::span<const int> seq_lens, const MlaMetadataOptions& options) {
  check_mla_shapes(q_shape, kv_shape);
  check_block_table(block_table, kv_shape);
  check_seq_lens(seq_lens, kv_shape, options.block_count);

  MlaMetadata metadata;
  metadata.descriptor = descriptor_of(q_shape, kv_shape, options);
  metadata.batch = static_cast<int>(q_shape[0]);
  metadata.seqlen_q = static_cast<int>(q_shape[2]);
  metadata.num_blocks = static_cast<int>(kv_shape[2]);
  metadata.seq_lens.assign(seq_lens.begin(), seq_lens.end());
  metadata.max_seqlen_kv = *std::max_element(seq_lens.begin(), seq_lens.end());
  metadata.has_spare_blocks =
      (std::int64_t{metadata.max_seqlen_kv} + block_size - 1) / block_size < metadata.num_blocks;
  const TensorView q =
      contiguous_view(nullptr, options.dtype, {q_shape[0], q_shape[1], q_shape[2], q_shape[3]});
  const TensorView kv = contiguous_view(
      nullptr, options.dtype, {kv_shape[0], kv_shape[1], kv_shape[2], kv_shape[3], kv_shape[4]});
  std::copy_n(q.strides.begin(), metadata.q_strides.size(), metadata.q_strides.begin());
  metadata.kv_strides = kv.strides;
  plan_split(metadata, target_of(options));
  return metadata;
}

DecodePlan make_mla_plan(AttentionRuntime& runtime, const MlaMetadata& metadata, int device,
                         CUstream_st* stream) {
  DecodePlan plan(runtime.prepare_decode(metadata.descriptor, device, stream), metadata.batch,
                  metadata.seqlen_q, most_keys(metadata));
  plan.update(metadata.seq_lens, stream);
  return plan;
}

void flash_mla_with_kvcache(const FlashMlaCall& call, const MlaMetadata& metadata,
                            const DecodePlan& plan, void* workspace, std::int64_t workspace_bytes,
                            CUstream_st* stream) {
  check_flash_mla_call(call, metadata);
  DecodeCall decode;
  // [B, Hq, S, D] -> [B, S, Hq, D], and [B, Hk, Nblk, 64, D] -> one hnd pool per request.
  decode.q = permuted_view(call.q, {0, 2, 1, 3});
  decode.k_cache = permuted_view(call.k_cache, {0, 2, 1, 3, 4});
  if (call.v_cache.data != nullptr) {
    decode.v_cache = permuted_view(call.v_cache, {0, 2, 1, 3, 4});
  }
  decode.block_table = call.block_table;
  decode.seq_lens = call.seq_lens;
  decode.mask = call.mask;
  decode.out = permuted_view(call.out, {0, 2, 1, 3});
  decode.lse = call.lse;
  decode.softmax_scale =
      call.softmax_scale != 0
          ? call.softmax_scale
          : 1.0f / std::sqrt(static_cast<float>(metadata.descriptor.head_dim_qk));
  run_decode(plan, decode, workspace, workspace_bytes, stream);
}

}  // namespace attnjit
