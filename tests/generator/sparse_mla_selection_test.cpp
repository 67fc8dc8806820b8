// The config of sparse_mla_sm80: its tile, and what of a descriptor it takes.
#include <string>
#include <tuple>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "sparse_mla_descriptor.hpp"

namespace {

using namespace attnjit;
using test::sparse_mla;

SparseMlaConfig config_of(const AttentionDescriptor& descriptor, std::string_view device = "h200") {
  const auto configs = select_configs(descriptor, find_target_device(device).value());
  REQUIRE(configs.size() == 1);
  return std::get<SparseMlaConfig>(configs[0]);
}

using Tile = std::tuple<int, int, int, int>;  // block_m, block_n, num_warps, column_warps

Tile tile_of(const AttentionDescriptor& descriptor, std::string_view device = "h200") {
  const SparseMlaConfig config = config_of(descriptor, device);
  return {config.block_m, config.block_n, config.num_warps, config.column_warps};
}

constexpr Operation decode = Operation::sparse_mla_decode;
constexpr Operation prefill = Operation::sparse_mla_prefill;

TEST_CASE("token-sparse attention has one kernel on every card, with the call's own constants") {
  AttentionDescriptor descriptor = sparse_mla(prefill, 8);
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = DataType::fp16;
  descriptor.has_sinks = true;
  for (const char* card : {"a100", "h200", "b200", "l4", "rtx5090"}) {
    const SparseMlaConfig config = config_of(descriptor, card);
    CHECK(config.dtype == DataType::fp16);
    CHECK(config.kv_encoding == KvEncoding::plain);
    CHECK(config.head_dim_qk == 576);
    CHECK(config.head_dim_v == 512);
    CHECK(config.value_source == ValueSource::prefix_of_k);
    CHECK(config.has_sinks);
  }
  for (const KvEncoding encoding : {KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    const SparseMlaConfig config = config_of(sparse_mla(decode, 8, encoding));
    CHECK(config.dtype == DataType::bf16);
    CHECK(config.kv_encoding == encoding);
  }
}

TEST_CASE("the smallest tile that holds all heads is taken, the largest for more") {
  CHECK(tile_of(sparse_mla(decode, 1)) == Tile{16, 32, 4, 4});
  CHECK(tile_of(sparse_mla(decode, 16)) == Tile{16, 32, 4, 4});
  CHECK(tile_of(sparse_mla(decode, 17)) == Tile{32, 32, 8, 4});
  CHECK(tile_of(sparse_mla(decode, 32)) == Tile{32, 32, 8, 4});
  CHECK(tile_of(sparse_mla(decode, 33)) == Tile{64, 64, 8, 2});
  CHECK(tile_of(sparse_mla(decode, 128)) == Tile{64, 64, 8, 2});
  CHECK(tile_of(sparse_mla(decode, 1024)) == Tile{64, 64, 8, 2});
}

TEST_CASE(
    "a tile of tokens is what fits twice per multiprocessor, else once, else for fewer heads") {
  CHECK(tile_of(sparse_mla(decode, 128, KvEncoding::fp8_656)) == Tile{64, 64, 8, 2});
  CHECK(tile_of(sparse_mla(decode, 16, KvEncoding::fp8_584)) == Tile{16, 32, 4, 4});
  CHECK(tile_of(sparse_mla(decode, 128), "a100") == Tile{64, 32, 8, 2});
  CHECK(tile_of(sparse_mla(decode, 128), "l4") == Tile{16, 32, 4, 4});
  CHECK(tile_of(sparse_mla(decode, 128, KvEncoding::fp8_656), "l4") == Tile{32, 32, 8, 4});
}

TEST_CASE("page size, topk and query tokens shape no kernel") {
  const AttentionDescriptor descriptor = sparse_mla(decode, 128);
  const SparseMlaConfig config = config_of(descriptor);
  AttentionDescriptor other = descriptor;
  other.page_size = 576;
  other.topk = 2048;
  other.max_seqlen_q = 4;
  other.batch_invariant = true;
  CHECK(config_of(other) == config);
  CHECK(config_of(sparse_mla(prefill, 128)) == config);
}

TEST_CASE("a token-sparse config is described by encoding, head dims and tile") {
  AttentionDescriptor descriptor = sparse_mla(decode, 64, KvEncoding::fp8_656);
  descriptor.has_sinks = true;
  CHECK(describe(KernelConfig(config_of(descriptor))) ==
        "sparse_mla_sm80 bf16 fp8_656 576/512 sinks m64 n64 warps 8");
  CHECK(describe(KernelConfig(config_of(sparse_mla(prefill, 8)))) ==
        "sparse_mla_sm80 bf16 576/512 m16 n32 warps 4");
}

}  // namespace
