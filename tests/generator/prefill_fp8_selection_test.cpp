// The config of prefill_sm80 where q, k, v, the rope or the output are fp8.
#include <string>
#include <tuple>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;
using test::ragged_prefill;
using test::rope_prefill;

PrefillConfig config_of(const AttentionDescriptor& descriptor, std::string_view card = "h200") {
  const auto configs = select_configs(descriptor, find_target_device(card).value());
  REQUIRE(configs.size() == 2);  // and what merges its parts
  return std::get<PrefillConfig>(configs[0]);
}

using Tile = std::tuple<int, int, int, int>;  // block_m, block_n, num_warps, column_warps

Tile tile_of(const AttentionDescriptor& descriptor) {
  const PrefillConfig config = config_of(descriptor);
  return {config.block_m, config.block_n, config.num_warps, config.column_warps};
}

AttentionDescriptor fp8_prefill(int head_dim_qk, int head_dim_v) {
  AttentionDescriptor descriptor = ragged_prefill(head_dim_qk, head_dim_v, 1);
  descriptor.dtype_q = descriptor.dtype_kv = DataType::fp8_e4m3;
  return descriptor;
}

TEST_CASE("fp8 is multiplied as bf16, and the config says what is stored and how it is scaled") {
  AttentionDescriptor descriptor = fp8_prefill(128, 128);
  descriptor.dtype_kv = descriptor.dtype_out = DataType::fp8_e5m2;
  descriptor.scales_q = ScaleGrain::per_token;
  descriptor.scales_kv = ScaleGrain::per_block;
  descriptor.scales_out = ScaleGrain::per_tensor;
  descriptor.scale_block = 64;
  const PrefillConfig config = config_of(descriptor);
  CHECK(config.dtype == DataType::bf16);
  CHECK(config.dtype_q == DataType::fp8_e4m3);
  CHECK(config.dtype_kv == DataType::fp8_e5m2);
  CHECK(config.dtype_out == DataType::fp8_e5m2);
  CHECK(config.scales_q == ScaleGrain::per_token);
  CHECK(config.scales_kv == ScaleGrain::per_block);
  CHECK(config.scale_block == 64);
  AttentionDescriptor half = ragged_prefill(128, 128, 1);
  half.dtype_q = half.dtype_kv = DataType::fp16;
  half.dtype_out = DataType::bf16;
  CHECK(config_of(half).dtype == DataType::fp16);
  CHECK(config_of(half).dtype_out == DataType::bf16);
}

TEST_CASE("the rope's columns have their own type and scales, and q may have them apart") {
  AttentionDescriptor descriptor = rope_prefill(64);
  descriptor.dtype_rope = DataType::fp8_e4m3;
  descriptor.scales_rope = ScaleGrain::per_block;
  descriptor.scale_block = 32;
  descriptor.q_rope_apart = true;
  const PrefillConfig config = config_of(descriptor);
  CHECK(config.dtype_kv == DataType::bf16);
  CHECK(config.dtype_rope == DataType::fp8_e4m3);
  CHECK(config.scales_rope == ScaleGrain::per_block);
  CHECK(config.scale_block == 32);
  CHECK(config.q_rope_apart);
}

TEST_CASE("a warp has 16 rows where fp8 is converted") {
  const Tile rows_16 = {128, 64, 8, 1};
  const auto with_types = [](DataType q, DataType kv, DataType out) {
    AttentionDescriptor descriptor = ragged_prefill(64, 64, 1);
    descriptor.dtype_q = q;
    descriptor.dtype_kv = kv;
    descriptor.dtype_out = out;
    return descriptor;
  };
  constexpr DataType bf16 = DataType::bf16;
  constexpr DataType fp8 = DataType::fp8_e4m3;
  CHECK(tile_of(with_types(bf16, bf16, DataType::fp16)) == Tile{128, 64, 4, 1});
  CHECK(tile_of(with_types(fp8, fp8, bf16)) == rows_16);
  CHECK(tile_of(with_types(bf16, DataType::fp8_e5m2, bf16)) == rows_16);
  CHECK(tile_of(with_types(bf16, bf16, fp8)) == rows_16);
  AttentionDescriptor rope = rope_prefill(64);
  CHECK(tile_of(rope) == Tile{128, 64, 4, 1});
  rope.dtype_rope = fp8;
  CHECK(tile_of(rope) == rows_16);
}

// By hand: beside the elements of 2 bytes, the codes of a tile's keys, or of its values if these
// are more, and 4 bytes for each scale that is kept.
TEST_CASE("fp8 is staged in shared memory of its own, beside the scales of rows and keys") {
  const int elements = ((128 + 64) * 200 + 64 * 136) * 2 + 96;
  AttentionDescriptor descriptor = fp8_prefill(192, 128);
  CHECK(config_of(descriptor).shared_memory_bytes == elements + 64 * 192);
  descriptor.scales_q = ScaleGrain::per_head;
  CHECK(config_of(descriptor).shared_memory_bytes == elements + 64 * 192 + 16);
  descriptor.scales_kv = ScaleGrain::per_token;
  CHECK(config_of(descriptor).shared_memory_bytes == elements + 64 * 192 + 16 + 2 * 64 * 4);
  descriptor.scales_q = ScaleGrain::per_token;
  CHECK(config_of(descriptor).shared_memory_bytes == elements + 64 * 192 + (128 + 2 * 64) * 4);
  descriptor.scales_q = descriptor.scales_kv = ScaleGrain::per_block;
  descriptor.scale_block = 64;
  CHECK(config_of(descriptor).shared_memory_bytes == elements + 64 * 192);
  AttentionDescriptor rope = rope_prefill(64);
  rope.dtype_rope = DataType::fp8_e4m3;
  CHECK(config_of(rope).shared_memory_bytes == elements + 64 * 64);
  rope.dtype_q = rope.dtype_kv = DataType::fp8_e4m3;
  CHECK(config_of(rope).shared_memory_bytes == elements + 64 * 192);
  rope.dtype_rope = DataType::bf16;
  CHECK(config_of(rope).shared_memory_bytes == elements + 64 * 128);
  AttentionDescriptor wide_values = fp8_prefill(64, 128);
  wide_values.dtype_q = DataType::bf16;
  CHECK(config_of(wide_values).shared_memory_bytes ==
        ((128 + 64) * 72 + 64 * 136) * 2 + 96 + 64 * 128);
}

TEST_CASE("every head dim of an fp8 prefill fits every card") {
  std::vector<std::string> misfits;
  for (const TargetDevice& device : target_device_presets()) {
    for (const int head_dim : {8, 72, 128, 256, 512}) {
      AttentionDescriptor descriptor = fp8_prefill(head_dim, head_dim);
      descriptor.scales_q = descriptor.scales_kv = ScaleGrain::per_token;
      const PrefillConfig config = config_of(descriptor, device.name);
      if (config.shared_memory_bytes > device.shared_memory_per_block) {
        misfits.push_back(device.name + " " + describe(config));
      }
    }
    AttentionDescriptor latent = ragged_prefill(576, 512, 16);
    latent.value_source = ValueSource::prefix_of_k;
    latent.dtype_q = latent.dtype_kv = DataType::fp8_e4m3;
    config_of(latent, device.name);
  }
  CHECK(misfits == std::vector<std::string>{});
}

}  // namespace
