// The prefill whose rope columns of k lie in a cache, on the GPU: equal to the bit to the prefill
// over keys put together on the host; over chunks of the keys, merged, equal but for rounding.
#include "attnjit/flare_mla_prefill.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "catch.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"
#include "ragged_prefill.hpp"
#include "rope_example.hpp"
#include "rope_result.hpp"

namespace attnjit {
namespace {

using namespace test;

void set_window(AttentionDescriptor& descriptor) {
  if (descriptor.mask == MaskKind::sliding_window) {
    descriptor.window_left = 40;
    descriptor.window_right = 0;
  }
}

float scale_of(const RopeExample& example) {
  return 1.0f / std::sqrt(static_cast<float>(example.q_depth));
}

RopeResult run_whole(const RopeExample& example, const RopeTensors& tensors) {
  AttentionDescriptor descriptor = test::ragged_prefill(example.q_depth, example.depth, 1);
  descriptor.num_q_heads = descriptor.num_kv_heads = example.heads;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = example.dtype;
  descriptor.mask = example.mask;
  descriptor.returns_lse = true;
  set_window(descriptor);
  const DeviceStream stream(0);
  CUstream_st* const handle = stream.handle();
  const Bits keys = whole_keys(example, tensors);
  const Numbers q_rows = offsets_of(example.queries);
  const Numbers kv_rows = offsets_of(example.keys);
  const DeviceBuffer q = make_device_buffer<std::uint16_t>(0, tensors.q, handle);
  const DeviceBuffer k = make_device_buffer<std::uint16_t>(0, keys, handle);
  const DeviceBuffer v = make_device_buffer<std::uint16_t>(0, tensors.v, handle);
  const DeviceBuffer q_offsets = make_device_buffer<int>(0, q_rows, handle);
  const DeviceBuffer kv_offsets = make_device_buffer<int>(0, kv_rows, handle);
  const RopeOutputs outputs(example, handle);
  PrefillCall call;
  call.q = contiguous_view(q.data(), example.dtype,
                           {example.total_queries(), example.heads, example.q_depth});
  call.k = contiguous_view(k.data(), example.dtype,
                           {example.total_keys(), example.heads, example.q_depth});
  call.v = contiguous_view(v.data(), example.dtype,
                           {example.total_keys(), example.heads, example.depth});
  call.q_offsets = contiguous_view(q_offsets.data(), DataType::int32, {example.batch() + 1});
  call.kv_offsets = contiguous_view(kv_offsets.data(), DataType::int32, {example.batch() + 1});
  call.out = outputs.out;
  call.lse = outputs.lse;
  call.softmax_scale = scale_of(example);
  run_prefill(*gpu_runtime().prepare_prefill(descriptor, 0), call, handle);
  return outputs.download(handle);
}

AttentionDescriptor rope_descriptor(const RopeExample& example) {
  AttentionDescriptor descriptor = flare_mla_prefill_descriptor({.num_heads = example.heads,
                                                                 .q_depth = example.q_depth,
                                                                 .depth = example.depth,
                                                                 .page_size = example.page_size,
                                                                 .returns_lse = true,
                                                                 .mask = example.mask,
                                                                 .dtype = example.dtype});
  if (example.heads_first) {
    descriptor.kv_layout_tag = example.is_paged() ? KvLayoutTag::hnd : KvLayoutTag::bhsd;
  }
  set_window(descriptor);
  return descriptor;
}

// What is not as it should be, so that a test can see it found.
struct Mistake {
  int rope_shift = 0;
  bool lacks_cache_offsets = false;
};

// Over some keys, from memory that lies as in the cache and rows of a chunk.
RopeResult run_rope(const RopeExample& example, const RopeTensors& tensors, const KeyChunk& chunk,
                    const Mistake& mistake = {}) {
  const DeviceStream stream(0);
  CUstream_st* const handle = stream.handle();
  const RopeCache cache = make_cache(example, tensors, mistake.rope_shift);
  const auto upload = [&](const Bits& elements) {
    return make_device_buffer<std::uint16_t>(0, elements, handle);
  };
  const auto upload_numbers = [&](const Numbers& numbers) {
    return make_device_buffer<int>(0, numbers, handle);
  };
  const Numbers rows = row_offsets(example, chunk);
  const DeviceBuffer q = upload(tensors.q);
  const DeviceBuffer k = upload(rows_of_chunk(example, chunk, tensors.k));
  const DeviceBuffer v = upload(rows_of_chunk(example, chunk, tensors.v));
  const DeviceBuffer k_rope = upload(cache.elements);
  const DeviceBuffer table = upload_numbers(example.is_paged() ? cache.table : Numbers{0});
  const DeviceBuffer cached = upload_numbers(example.cached());
  const DeviceBuffer q_offsets = upload_numbers(offsets_of(example.queries));
  const DeviceBuffer kv_offsets = upload_numbers(rows);
  const DeviceBuffer cache_offsets = upload_numbers(chunk.begin);
  const RopeOutputs outputs(example, handle);
  const int batch = example.batch();
  FlareMlaPrefillCall call;
  call.q = contiguous_view(q.data(), example.dtype,
                           {example.total_queries(), example.heads, example.q_depth});
  call.k = contiguous_view(k.data(), example.dtype, {rows.back(), example.heads, example.depth});
  call.v = contiguous_view(v.data(), example.dtype, {rows.back(), example.heads, example.depth});
  call.k_rope = cache.view;
  call.k_rope.data = k_rope.data();
  if (example.is_paged()) {
    call.block_table = contiguous_view(table.data(), DataType::int32, {batch, cache.columns});
    call.cache_lengths = contiguous_view(cached.data(), DataType::int32, {batch});
  }
  call.valid_length = contiguous_view(q_offsets.data(), DataType::int32, {batch + 1});
  call.cache_row_offsets = contiguous_view(kv_offsets.data(), DataType::int32, {batch + 1});
  const bool is_whole =
      std::all_of(chunk.begin.begin(), chunk.begin.end(), [](int first) { return first == 0; });
  if (!is_whole && !mistake.lacks_cache_offsets) {
    call.cache_offsets = contiguous_view(cache_offsets.data(), DataType::int32, {batch});
  }
  call.output = outputs.out;
  call.lse = outputs.lse;
  call.scale = scale_of(example);
  flare_mla_prefill(*gpu_runtime().prepare_prefill(rope_descriptor(example), 0), call, handle);
  return outputs.download(handle);
}

void check_equal_to_whole_keys(const RopeExample& example) {
  const RopeTensors tensors(example);
  const RopeResult expected = run_whole(example, tensors);
  const RopeResult result = run_rope(example, tensors, all_keys(example));
  INFO(describe(example));
  REQUIRE(is_written(expected));
  CHECK(result.out == expected.out);
  CHECK(result.lse == expected.lse);
}

TEST_CASE("paged rope columns are worth those of k, to the bit") {
  const std::vector<RopeExample> examples = {
      {},
      {.page_size = 1},
      {.page_size = 16, .heads_first = true},
      {.heads = 16, .page_size = 128},
      {.heads = 1, .width = 64},
      {.page_size = 1, .width = 64, .mask = MaskKind::none},
      {.mask = MaskKind::none},
      {.mask = MaskKind::sliding_window},
      {.dtype = DataType::fp16, .page_size = 16, .mask = MaskKind::sliding_window},
      {.dtype = DataType::fp16, .heads = 16},
      {.q_depth = 96, .depth = 64, .page_size = 16, .width = 544},
      {.dtype = DataType::fp16, .q_depth = 96, .depth = 64, .width = 32, .mask = MaskKind::none},
      {.q_depth = 136, .depth = 128, .page_size = 1, .width = 8},
      {.queries = {1}, .keys = {1}},
      {.heads = 1, .queries = {500}, .keys = {1500}},
      {.page_size = 3, .queries = {0, 128, 64, 0}, .keys = {0, 129, 64, 7}},
  };
  for (const RopeExample& example : examples) {
    check_equal_to_whole_keys(example);
  }
}

TEST_CASE("dense rope columns are worth those of k, to the bit") {
  const std::vector<RopeExample> examples = {
      {},
      {.width = 64},
      {.heads = 16, .heads_first = true},
      {.heads = 1, .mask = MaskKind::none},
      {.width = 64, .mask = MaskKind::sliding_window},
      {.dtype = DataType::fp16, .heads = 16, .width = 64},
      {.q_depth = 96, .depth = 64, .width = 32},
      {.dtype = DataType::fp16, .q_depth = 136, .depth = 128, .width = 576},
      {.queries = {150, 0, 149, 1}},
  };
  for (const RopeExample& example : examples) {
    check_equal_to_whole_keys(dense_example(example));
  }
}

TEST_CASE("the rope columns of the key beside do not pass for a key's own") {
  for (const RopeExample& example : {RopeExample(), dense_example({})}) {
    const RopeTensors tensors(example);
    const RopeResult expected = run_whole(example, tensors);
    for (const int shift : {1, 2}) {
      const RopeResult result =
          run_rope(example, tensors, all_keys(example), {.rope_shift = shift});
      INFO(describe(example));
      CHECK(is_written(result));
      CHECK(result.out != expected.out);
      CHECK(result.lse != expected.lse);
    }
  }
}

// The squared distance of the outputs, relative to their squares; the largest of two LSEs.
struct Distance {
  double out;
  double lse;
};

Distance distance_of(const RopeResult& a, const RopeResult& b) {
  double squares = 0;
  double differences = 0;
  Distance distance = {0, 0};
  for (std::size_t i = 0; i < a.out.size(); ++i) {
    const double x = from_bf16(a.out[i]);
    const double y = from_bf16(b.out[i]);
    differences += (x - y) * (x - y);
    squares += x * x + y * y;
  }
  for (std::size_t i = 0; i < a.lse.size(); ++i) {
    distance.lse = std::max<double>(distance.lse, std::abs(a.lse[i] - b.lse[i]));
  }
  distance.out = differences / squares;
  return distance;
}

// Each product's operands and result are rounded once more or otherwise, by at most 1/512 of their
// values: in all some 2e-6 of the squares.
constexpr double rounding = 1e-5;

TEST_CASE("chunks of the keys merge into attention over all of them") {
  for (const RopeExample& example :
       {RopeExample(), RopeExample{.page_size = 16, .mask = MaskKind::none},
        RopeExample{.heads = 16, .page_size = 1, .mask = MaskKind::sliding_window},
        dense_example({}), dense_example({.width = 64, .mask = MaskKind::none})}) {
    const RopeTensors tensors(example);
    const RopeResult expected = run_rope(example, tensors, all_keys(example));
    std::vector<RopeResult> parts;
    for (const KeyChunk& chunk : two_chunks(example)) {
      parts.push_back(run_rope(example, tensors, chunk));
      INFO(describe(example));
      CHECK(is_written(parts.back()));
    }
    const Distance distance = distance_of(merge_results(example, parts), expected);
    INFO(describe(example) << ": " << distance.out << ", " << distance.lse);
    CHECK(distance.out < rounding);
    CHECK(distance.lse < 2e-5);
  }
}

TEST_CASE("chunks whose positions are not told do not merge into that") {
  // Without rows behind the last keys, which are NaN.
  const RopeExample example = {.queries = {70, 33}, .keys = {128, 81}};
  const RopeTensors tensors(example);
  const RopeResult expected = run_rope(example, tensors, all_keys(example));
  std::vector<RopeResult> parts;
  for (const KeyChunk& chunk : two_chunks(example)) {
    parts.push_back(run_rope(example, tensors, chunk, {.lacks_cache_offsets = true}));
  }
  const Distance distance = distance_of(merge_results(example, parts), expected);
  CHECK(distance.out > 100 * rounding);
  CHECK(distance.lse > 1e-2);
}

}  // namespace
}  // namespace attnjit
