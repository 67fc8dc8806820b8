// The checks of FlashMLA's tensor-shape reference: every documented error has its code and its fix,
// and the quick checks pass what they should. None of it needs a GPU.
#include "attnjit/flash_mla.hpp"

#include <array>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "flash_mla_checks.hpp"
#include "flash_mla_code.hpp"

namespace attnjit {
namespace {

using test::code_of;

// B 2, Hq 8, Hk 4, S 1, D 128, Nblk 3; lengths 130 and 64.
struct Example {
  std::array<std::int64_t, 4> q_shape = {2, 8, 1, 128};
  std::array<std::int64_t, 5> kv_shape = {2, 4, 3, 64, 128};
  TensorView block_table = contiguous_view(fake_pointer(), DataType::int32, {2, 3});
  std::vector<int> seq_lens = {130, 64};
  MlaMetadataOptions options;

  static void* fake_pointer() { return reinterpret_cast<void*>(std::uintptr_t{0x1000}); }

  MlaMetadata metadata() const {
    return get_mla_metadata(q_shape, kv_shape, block_table, seq_lens, options);
  }

  FlashMlaCall call() const {
    FlashMlaCall call;
    call.q = contiguous_view(fake_pointer(), DataType::bf16, {2, 8, 1, 128});
    call.k_cache = contiguous_view(fake_pointer(), DataType::bf16, {2, 4, 3, 64, 128});
    call.v_cache = call.k_cache;
    call.block_table = block_table;
    call.seq_lens = contiguous_view(fake_pointer(), DataType::int32, {2});
    call.out = call.q;
    return call;
  }
};

std::optional<FlashMlaErrorCode> metadata_code(const Example& example) {
  return code_of([&] { example.metadata(); });
}

std::optional<FlashMlaErrorCode> call_code(const FlashMlaCall& call) {
  const MlaMetadata metadata = Example().metadata();
  return code_of([&] { check_flash_mla_call(call, metadata); });
}

TEST_CASE("metadata of legal shapes holds dimensions, strides and a split") {
  const MlaMetadata metadata = Example().metadata();
  CHECK(metadata.batch == 2);
  CHECK(metadata.seqlen_q == 1);
  CHECK(metadata.num_blocks == 3);
  CHECK(metadata.max_seqlen_kv == 130);
  CHECK_FALSE(metadata.has_spare_blocks);
  CHECK(metadata.descriptor.num_q_heads == 8);
  CHECK(metadata.descriptor.num_kv_heads == 4);
  CHECK(metadata.descriptor.page_size == 64);
  CHECK(metadata.q_strides == std::array<std::int64_t, 4>{8 * 128, 128, 128, 1});
  CHECK(metadata.kv_strides ==
        std::array<std::int64_t, 5>{4 * 3 * 64 * 128, 3 * 64 * 128, 64 * 128, 128, 1});
  CHECK(metadata.pieces_per_request.size() == 2);
  CHECK(call_code(Example().call()) == std::nullopt);
}

TEST_CASE("a head ratio that is no integer is head_ratio") {
  Example example;
  example.q_shape[1] = 7;
  CHECK(metadata_code(example) == FlashMlaErrorCode::head_ratio);
}

TEST_CASE("a block table that does not have Nblk columns is block_count") {
  Example example;
  example.block_table = contiguous_view(Example::fake_pointer(), DataType::int32, {2, 2});
  CHECK(metadata_code(example) == FlashMlaErrorCode::block_count);
}

TEST_CASE("spare blocks pass with a mark, and are block_count only under the exact policy") {
  Example example;
  example.seq_lens = {60, 64};
  CHECK(example.metadata().has_spare_blocks);
  example.options.block_count = BlockCountPolicy::exact;
  CHECK(metadata_code(example) == FlashMlaErrorCode::block_count);
}

TEST_CASE("a sequence longer than its blocks is cache_overflow") {
  Example example;
  example.seq_lens = {64, 3 * 64 + 1};
  CHECK(metadata_code(example) == FlashMlaErrorCode::cache_overflow);
  example.seq_lens = {64, 3 * 64};
  CHECK(metadata_code(example) == std::nullopt);
}

TEST_CASE("q or a cache that is not contiguous inside is inner_contiguity") {
  FlashMlaCall call = Example().call();
  call.q.strides[1] = 256;
  CHECK(call_code(call) == FlashMlaErrorCode::inner_contiguity);
  call = Example().call();
  call.k_cache.strides[3] = 256;
  CHECK(call_code(call) == FlashMlaErrorCode::inner_contiguity);
  call = Example().call();
  call.v_cache.strides[4] = 2;
  CHECK(call_code(call) == FlashMlaErrorCode::inner_contiguity);
  call = Example().call();
  call.block_table.strides[0] = 4;
  CHECK(call_code(call) == FlashMlaErrorCode::inner_contiguity);
}

TEST_CASE("a mask shorter than the longest sequence is mask_length") {
  FlashMlaCall call = Example().call();
  call.mask = contiguous_view(Example::fake_pointer(), DataType::uint8, {2, 1, 1, 129});
  CHECK(call_code(call) == FlashMlaErrorCode::mask_length);
  call.mask = contiguous_view(Example::fake_pointer(), DataType::uint8, {2, 1, 1, 500});
  CHECK(call_code(call) == std::nullopt);
}

TEST_CASE("a mask of another rank is shape_mismatch") {
  FlashMlaCall call = Example().call();
  call.mask = contiguous_view(Example::fake_pointer(), DataType::uint8, {2, 130});
  CHECK(call_code(call) == FlashMlaErrorCode::shape_mismatch);
}

TEST_CASE("q and caches of different types are dtype_mismatch") {
  for (TensorView FlashMlaCall::*tensor :
       {&FlashMlaCall::q, &FlashMlaCall::k_cache, &FlashMlaCall::v_cache}) {
    FlashMlaCall call = Example().call();
    (call.*tensor).dtype = DataType::fp16;
    CHECK(call_code(call) == FlashMlaErrorCode::dtype_mismatch);
  }
}

TEST_CASE("an int64 block table is dtype_mismatch, never reinterpreted") {
  Example example;
  example.block_table.dtype = DataType::fp32;
  CHECK(metadata_code(example) == FlashMlaErrorCode::dtype_mismatch);
}

TEST_CASE("strides that are not monotonic are stride_order and name the layout tag") {
  FlashMlaCall call = Example().call();
  // Blocks outermost, then heads, viewed as [B, Hk, Nblk, 64, D].
  call.k_cache.strides = {4 * 3 * 64 * 128, 64 * 128, 4 * 64 * 128, 128, 1};
  CHECK(call_code(call) == FlashMlaErrorCode::stride_order);
  const MlaMetadata metadata = Example().metadata();
  try {
    check_flash_mla_call(call, metadata);
  } catch (const FlashMlaError& error) {
    CHECK(std::string(error.what()).find("layout tag") != std::string::npos);
  }
}

TEST_CASE("overlapping strides are stride_order") {
  FlashMlaCall call = Example().call();
  call.k_cache.strides[0] = call.k_cache.strides[1];
  CHECK(call_code(call) == FlashMlaErrorCode::stride_order);
}

TEST_CASE("wrong ranks, extents and lengths are shape_mismatch") {
  Example example;
  example.kv_shape[3] = 32;
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  example = Example();
  example.kv_shape[0] = 3;
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  example = Example();
  example.q_shape[3] = 64;
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  example = Example();
  example.q_shape[0] = 0;
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  example = Example();
  example.seq_lens = {1};
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  example = Example();
  example.seq_lens = {1, -1};
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  CHECK(code_of([] {
          check_mla_shapes(std::vector<std::int64_t>{2, 8, 128}, Example().kv_shape);
        }) == FlashMlaErrorCode::shape_mismatch);
  FlashMlaCall call = Example().call();
  call.k_cache.shape[2] = 2;
  CHECK(call_code(call) == FlashMlaErrorCode::shape_mismatch);
}

TEST_CASE("metadata for shapes that no kernel serves lists the refusal") {
  Example example;
  example.q_shape[3] = example.kv_shape[4] = 264;
  CHECK_THROWS_AS(example.metadata(), DescriptorError);
  example = Example();
  example.options.dtype = DataType::fp8_e4m3;
  CHECK_THROWS_AS(example.metadata(), DescriptorError);
}

TEST_CASE("ranks that no tensor has are refused without reading past the view") {
  for (const int rank : {-1, 6, 9}) {
    Example example;
    example.block_table.rank = rank;
    CHECK(metadata_code(example) == FlashMlaErrorCode::block_count);
    FlashMlaCall call = Example().call();
    call.q.rank = rank;
    CHECK(call_code(call) == FlashMlaErrorCode::shape_mismatch);
    call = Example().call();
    call.mask = contiguous_view(Example::fake_pointer(), DataType::uint8, {2, 1, 1, 500});
    call.mask.rank = rank;
    CHECK(call_code(call) == FlashMlaErrorCode::shape_mismatch);
  }
}

TEST_CASE("extents and strides whose products overflow are refused") {
  Example example;
  example.q_shape = {1 << 30, 8, 1, 128};
  example.kv_shape = {1 << 30, 4, 1 << 30, 64, 128};
  CHECK(metadata_code(example) == FlashMlaErrorCode::shape_mismatch);
  for (const std::int64_t stride : {std::int64_t{1} << 62, INT64_MAX}) {
    FlashMlaCall call = Example().call();
    call.k_cache.strides[2] = stride;
    CHECK(call_code(call) == FlashMlaErrorCode::stride_order);
  }
}

TEST_CASE("the longest length there is needs no more blocks than it fills") {
  Example example;
  example.q_shape[0] = example.kv_shape[0] = 1;
  example.kv_shape[2] = std::int64_t{1} << 25;
  example.block_table =
      contiguous_view(Example::fake_pointer(), DataType::int32, {1, std::int64_t{1} << 25});
  example.seq_lens = {INT32_MAX};
  example.options.block_count = BlockCountPolicy::exact;
  CHECK_FALSE(example.metadata().has_spare_blocks);
}

TEST_CASE("the split follows the device's multiprocessors") {
  Example example;
  example.kv_shape[2] = 512;
  example.block_table = contiguous_view(Example::fake_pointer(), DataType::int32, {2, 512});
  example.seq_lens = {32000, 64};
  const std::vector<int> on_h200 = example.metadata().pieces_per_request;
  example.options.target = find_target_device("l4").value();
  const std::vector<int> on_l4 = example.metadata().pieces_per_request;
  CHECK(on_h200[0] > on_l4[0]);
  CHECK(on_l4[0] > 1);
  CHECK(on_h200[1] == 1);
}

TEST_CASE("a batch-invariant split follows a request's own length") {
  Example example;
  example.kv_shape[2] = 512;
  example.block_table = contiguous_view(Example::fake_pointer(), DataType::int32, {2, 512});
  example.seq_lens = {32000, 64};
  example.options.batch_invariant = true;
  const std::vector<int> pieces = example.metadata().pieces_per_request;
  CHECK(pieces[0] > 1);
  CHECK(pieces[1] == 1);
  example.seq_lens = {32000, 30000};
  CHECK(example.metadata().pieces_per_request[0] == pieces[0]);
  CHECK(example.metadata().grid.max_pieces >= 2 * std::int64_t{pieces[0]});
}

}  // namespace
}  // namespace attnjit
