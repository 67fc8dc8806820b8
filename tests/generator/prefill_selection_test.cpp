// The config of prefill_sm80: its tile, and what of a descriptor it takes.
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;
using test::ragged_prefill;
using test::rope_prefill;

TargetDevice device_named(std::string_view name) {
  return find_target_device(name).value();
}

PrefillConfig config_of(const AttentionDescriptor& descriptor, std::string_view device = "h200") {
  const auto configs = select_configs(descriptor, device_named(device));
  REQUIRE(configs.size() == 2);  // and what merges its parts
  return std::get<PrefillConfig>(configs[0]);
}

AttentionDescriptor latent_prefill(int head_dim_qk, int head_dim_v) {
  AttentionDescriptor descriptor = ragged_prefill(head_dim_qk, head_dim_v, 16);
  descriptor.value_source = ValueSource::prefix_of_k;
  return descriptor;
}

using Tile = std::tuple<int, int, int, int>;  // block_m, block_n, num_warps, column_warps

Tile tile_of(const AttentionDescriptor& descriptor, std::string_view device = "h200") {
  const PrefillConfig config = config_of(descriptor, device);
  return {config.block_m, config.block_n, config.num_warps, config.column_warps};
}

TEST_CASE("prefill has one kernel on every card, with the call's own constants") {
  AttentionDescriptor descriptor = ragged_prefill(192, 128, 4);
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = DataType::fp16;
  descriptor.has_sinks = true;
  for (const char* card : {"a100", "h200", "b200", "l4", "rtx5090"}) {
    const PrefillConfig config = config_of(descriptor, card);
    CHECK(config.dtype == DataType::fp16);
    CHECK(config.head_dim_qk == 192);
    CHECK(config.head_dim_v == 128);
    CHECK(config.q_per_kv == 4);
    CHECK(config.page_size == 0);
    CHECK(config.value_source == ValueSource::separate);
    CHECK(config.mask == MaskKind::causal);
    CHECK(config.has_sinks);
  }
}

TEST_CASE("a warp has 32 rows of up to 128 columns of v, 16 of up to 256, and 16 of half of more") {
  for (const int head_dim : {8, 64, 72, 128}) {
    CHECK(tile_of(ragged_prefill(head_dim, head_dim, 4)) == Tile{128, 64, 4, 1});
  }
  CHECK(tile_of(ragged_prefill(192, 128, 1)) == Tile{128, 64, 4, 1});
  CHECK(tile_of(ragged_prefill(192, 192, 1)) == Tile{128, 64, 8, 1});
  CHECK(tile_of(ragged_prefill(256, 256, 1)) == Tile{128, 64, 8, 1});
  CHECK(tile_of(latent_prefill(320, 256)) == Tile{128, 64, 8, 1});
  CHECK(tile_of(ragged_prefill(512, 512, 1)) == Tile{64, 64, 8, 2});
  CHECK(tile_of(latent_prefill(576, 512)) == Tile{64, 64, 8, 2});
}

TEST_CASE("a warp has 16 rows where masks and modifiers need the registers of the others") {
  const Tile rows_32 = {128, 64, 4, 1};
  const Tile rows_16 = {128, 64, 8, 1};
  AttentionDescriptor additive = ragged_prefill(64, 64, 4);
  additive.mask = MaskKind::materialized_additive;
  additive.dtype_mask = DataType::fp32;
  CHECK(tile_of(additive) == rows_16);
  const auto with_mask = [](int head_dim_qk, int head_dim_v, MaskKind mask) {
    AttentionDescriptor descriptor = ragged_prefill(head_dim_qk, head_dim_v, 1);
    descriptor.mask = mask;
    descriptor.chunk_size = mask == MaskKind::chunked ? 8192 : 0;
    return descriptor;
  };
  CHECK(tile_of(with_mask(192, 128, MaskKind::none)) == rows_32);
  CHECK(tile_of(with_mask(192, 128, MaskKind::chunked)) == rows_16);
  CHECK(tile_of(with_mask(128, 128, MaskKind::chunked)) == rows_32);
  for (const MaskKind mask : {MaskKind::document, MaskKind::tree, MaskKind::materialized_bool,
                              MaskKind::materialized_bits}) {
    CHECK(tile_of(with_mask(128, 128, mask)) == rows_16);
    CHECK(tile_of(with_mask(96, 96, mask)) == rows_32);
  }
  for (const int head_dim : {96, 104, 128}) {
    AttentionDescriptor modified = ragged_prefill(head_dim, head_dim, 1);
    modified.score_modifier = ScoreModifier::alibi;
    CHECK(tile_of(modified) == (head_dim > 96 ? rows_16 : rows_32));
    AttentionDescriptor sparse = ragged_prefill(head_dim, head_dim, 1);
    sparse.sparsity = Sparsity::block;
    sparse.sparsity_block = 64;
    CHECK(tile_of(sparse) == (head_dim > 96 ? rows_16 : rows_32));
  }
}

TEST_CASE("a prefill of few query tokens takes the small row tile, if that holds their rows") {
  const auto block_m = [](int head_dim, int q_per_kv, int max_seqlen_q) {
    AttentionDescriptor descriptor = ragged_prefill(head_dim, head_dim, q_per_kv);
    descriptor.max_seqlen_q = max_seqlen_q;
    return config_of(descriptor).block_m;
  };
  CHECK(block_m(128, 4, 0) == 128);  // any number
  CHECK(block_m(128, 4, 16) == 64);
  CHECK(block_m(128, 4, 17) == 128);
  CHECK(block_m(128, 1, 64) == 64);
  CHECK(block_m(256, 8, 8) == 64);
  CHECK(block_m(512, 4, 8) == 32);
  CHECK(block_m(512, 4, 9) == 64);
}

// By hand, in elements of 2 bytes: rows have an odd number of 16-byte units, so 192 columns take
// 200, 128 take 136, 576 take 584.
TEST_CASE("shared memory holds queries, keys and values, or the output in their place") {
  CHECK(config_of(ragged_prefill(192, 128, 1)).shared_memory_bytes ==
        ((128 + 64) * 200 + 64 * 136) * 2 + 96);
  CHECK(config_of(latent_prefill(576, 512)).shared_memory_bytes == (64 + 2 * 64) * 584 * 2 + 96);
  // 128 rows of 264 are more than 128 of 16 and 64 keys of 16 and of 264.
  CHECK(config_of(ragged_prefill(8, 256, 1)).shared_memory_bytes ==
        std::max(128 * 264, (128 + 64) * 24 + 64 * 264) * 2 + 96);
}

// Of shared memory; 72 columns are padded to 80 and take 88.
TEST_CASE("head dims are padded to whole products of 16") {
  CHECK(config_of(ragged_prefill(72, 72, 1)).shared_memory_bytes ==
        ((128 + 64) * 88 + 64 * 88) * 2 + 96);
  CHECK(config_of(ragged_prefill(72, 72, 1)).head_dim_qk == 72);
}

TEST_CASE("a tile of prefill that does not fit gives way to fewer keys, then to fewer rows") {
  // 99 KiB: 128 rows and 64 keys of 264 do not fit, nor do 32 keys; 64 rows and 32 keys do.
  CHECK(tile_of(ragged_prefill(256, 256, 1), "rtx3090") == Tile{64, 32, 4, 1});
  CHECK(tile_of(ragged_prefill(192, 192, 1), "rtx3090") == Tile{128, 32, 8, 1});
  // 16 keys, where no row tile has room for more.
  CHECK(tile_of(ragged_prefill(512, 512, 1), "rtx3090") == Tile{32, 32, 4, 2});
  CHECK(tile_of(latent_prefill(576, 512), "rtx3090") == Tile{32, 16, 4, 2});
  CHECK(tile_of(ragged_prefill(512, 512, 1), "a100") == Tile{64, 32, 8, 2});
}

TEST_CASE("every head dim of prefill fits every card") {
  std::vector<std::string> misfits;
  for (const TargetDevice& device : target_device_presets()) {
    for (const int qk : {8, 64, 72, 80, 96, 112, 128, 192, 248, 256, 512}) {
      for (const int v : {8, 64, 72, 80, 96, 112, 128, 192, 248, 256, 512}) {
        const PrefillConfig config = config_of(ragged_prefill(qk, v, 3), device.name);
        if (config.shared_memory_bytes > device.shared_memory_per_block) {
          misfits.push_back(device.name + " " + describe(config));
        }
      }
    }
  }
  CHECK(misfits == std::vector<std::string>{});
}

TEST_CASE("a prefill that fits no tile is refused, naming size, card and fix") {
  TargetDevice device = device_named("rtx3090");
  device.shared_memory_per_block = 64 * 1024;
  std::string refusal;
  try {
    select_configs(latent_prefill(576, 512), device);
  } catch (const DescriptorError& error) {
    refusal = error.what();
  }
  CHECK(refusal ==
        "head_dim_qk = 576: no tile fits in the 65536 bytes of shared memory of rtx3090 (sm_86); "
        "fix: use a GPU with more shared memory per block");
}

TEST_CASE("the windows, chunks and blocks of a prefill are constants of its kernel") {
  AttentionDescriptor descriptor = ragged_prefill(128, 128, 4);
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = 4095;
  descriptor.window_right = 0;
  CHECK(config_of(descriptor).window_left == 4095);
  CHECK(config_of(descriptor).window_right == 0);
  descriptor.mask = MaskKind::chunked_causal;
  descriptor.window_left = descriptor.window_right = -1;
  descriptor.chunk_size = 8192;
  descriptor.score_modifier = ScoreModifier::softcap;
  descriptor.sparsity = Sparsity::block;
  descriptor.sparsity_block = 64;
  const PrefillConfig config = config_of(descriptor);
  CHECK(config.mask == MaskKind::chunked_causal);
  CHECK(config.window_left == -1);
  CHECK(config.window_right == -1);
  CHECK(config.chunk_size == 8192);
  CHECK(config.score_modifier == ScoreModifier::softcap);
  CHECK(config.sparsity_block == 64);
}

// The device adds places to them in 32 bits.
TEST_CASE("windows too wide to hide anything share a kernel") {
  AttentionDescriptor descriptor = ragged_prefill(128, 128, 4);
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = 0x7fffffff;
  descriptor.window_right = 1 << 30;
  const PrefillConfig config = config_of(descriptor);
  CHECK(config.window_left == 1 << 30);
  CHECK(config.window_right == 1 << 30);
  descriptor.window_left = (1 << 30) + 1;
  CHECK(config_of(descriptor) == config);
  descriptor.window_left = (1 << 30) - 1;
  CHECK(config_of(descriptor) != config);
}

TEST_CASE("prefills that differ only in what a launch brings share their kernel") {
  const AttentionDescriptor descriptor = ragged_prefill(128, 128, 4);
  AttentionDescriptor other = descriptor;
  other.num_q_heads *= 8;
  other.num_kv_heads *= 8;
  other.kv_layout = KvLayout::dense;
  other.kv_layout_tag = KvLayoutTag::bhsd;
  other.returns_lse = false;
  other.batch_invariant = true;
  other.max_seqlen_q = 4096;
  CHECK(config_of(other) == config_of(descriptor));
  other = descriptor;
  other.operation = Operation::prefill_kvcache;
  other.kv_layout = KvLayout::paged;
  other.kv_layout_tag = KvLayoutTag::nhd;
  other.page_size = 64;
  const PrefillConfig paged = config_of(other);
  other.kv_layout_tag = KvLayoutTag::hnd;
  CHECK(config_of(other) == paged);
  CHECK(paged.page_size == 64);
  CHECK(paged != config_of(descriptor));
}

TEST_CASE("rope columns have a layout of their own, under the tile of whole keys") {
  for (const int page_size : {0, 1, 64}) {
    PrefillConfig config = config_of(rope_prefill(page_size));
    CHECK(config.head_dim_rope == 64);
    CHECK(config.rope_page_size == page_size);
    CHECK(config.page_size == 0);
    config.head_dim_rope = config.rope_page_size = 0;
    CHECK(config == config_of(ragged_prefill(192, 128, 1)));
  }
  CHECK(config_of(ragged_prefill(192, 128, 1)).head_dim_rope == 0);
}

TEST_CASE("the order in which a cache of rope columns lies does not shape their kernel") {
  for (const int page_size : {0, 64}) {
    AttentionDescriptor heads_first = rope_prefill(page_size);
    heads_first.kv_layout_tag = page_size > 0 ? KvLayoutTag::hnd : KvLayoutTag::bhsd;
    CHECK(config_of(heads_first) == config_of(rope_prefill(page_size)));
  }
}

// A decode's are folded by the number of its query tokens, of which prefill knows nothing.
TEST_CASE("a prefill's causal mask stays one, whatever its query tokens") {
  AttentionDescriptor descriptor = ragged_prefill(128, 128, 4);
  descriptor.max_seqlen_q = 1;
  CHECK(config_of(descriptor).mask == MaskKind::causal);
}

TEST_CASE("what merges the parts of a prefill fits its output, its rows and its sinks") {
  AttentionDescriptor descriptor = ragged_prefill(128, 64, 4);
  descriptor.has_sinks = true;
  descriptor.dtype_out = DataType::fp16;
  const auto configs = select_configs(descriptor, device_named("h200"));
  const auto& prefill = std::get<PrefillConfig>(configs.at(0));
  const auto& combine = std::get<CombinePrefillConfig>(configs.at(1));
  CHECK(combine.dtype_out == DataType::fp16);
  CHECK(combine.head_dim_v == 64);
  CHECK(combine.q_per_kv == 4);
  CHECK(combine.block_m == prefill.block_m);
  CHECK(combine.block_m % (combine.num_threads / 32) == 0);  // a warp has a row
  CHECK(combine.has_sinks);
}

TEST_CASE("chunks and calls of any size leave places that count in 32 bits") {
  AttentionDescriptor descriptor = ragged_prefill(128, 128, 4);
  descriptor.mask = MaskKind::chunked;
  descriptor.chunk_size = std::numeric_limits<int>::max();
  descriptor.max_seqlen_q = std::numeric_limits<int>::max();
  CHECK(config_of(descriptor).chunk_size == 1 << 30);
  CHECK(config_of(descriptor).block_m == 128);  // as of any number of query tokens
}

}  // namespace
