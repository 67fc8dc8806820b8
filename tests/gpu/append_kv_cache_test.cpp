// Cache writes on the GPU against a model on the host, byte for byte over the whole cache: every
// form of a call and every layout, tokens without a place, fp8.
#include "attnjit/append_kv_cache.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "append_example.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/device_memory.hpp"
#include "catch.hpp"
#include "gpu_runtime.hpp"

namespace attnjit {
namespace {

using test::AppendExample;
using test::AppendForm;
using test::AppendPlace;
using test::AppendSide;
using test::Bytes;

AttentionDescriptor cache_of(int heads, int head_dim_qk, int head_dim_v, int page_size) {
  AttentionDescriptor attention;
  attention.num_q_heads = attention.num_kv_heads = heads;
  attention.head_dim_qk = head_dim_qk;
  attention.head_dim_v = head_dim_v;
  attention.page_size = page_size;
  return append_kv_cache_descriptor(attention);
}

AttentionDescriptor latent_cache(int page_size) {
  AttentionDescriptor attention = cache_of(1, 576, 512, page_size);
  attention.value_source = ValueSource::prefix_of_k;
  return append_kv_cache_descriptor(attention);
}

AttentionDescriptor with_types(AttentionDescriptor descriptor, DataType dtype, DataType dtype_kv,
                               ScaleGrain scales = ScaleGrain::none) {
  descriptor.dtype_q = descriptor.dtype_out = dtype;
  descriptor.dtype_kv = dtype_kv;
  descriptor.scales_kv = scales;
  return descriptor;
}

AttentionDescriptor with_tag(AttentionDescriptor descriptor, KvLayoutTag tag) {
  descriptor.kv_layout_tag = tag;
  return descriptor;
}

// A tensor of the call, in device memory that `buffers` keeps.
template <typename Value>
TensorView upload(TensorView view, const std::vector<Value>& values,
                  std::vector<DeviceBuffer>& buffers, const DeviceStream& stream) {
  buffers.push_back(make_device_buffer<Value>(0, values, stream.handle()));
  view.data = buffers.back().data();
  return view;
}

template <typename Value>
TensorView upload_list(DataType dtype, const std::vector<Value>& values,
                       std::vector<DeviceBuffer>& buffers, const DeviceStream& stream) {
  return upload(contiguous_view(nullptr, dtype, {static_cast<std::int64_t>(values.size())}), values,
                buffers, stream);
}

struct Sides {
  AppendSide k;
  AppendSide v;
};

void upload_places(const AppendExample& example, AppendKvCacheCall& call,
                   std::vector<DeviceBuffer>& buffers, const DeviceStream& stream) {
  const std::vector<int> table = make_table(example);
  const std::vector<AppendPlace> places = make_places(example, table);
  if (example.has_offsets()) {
    std::vector<int> offsets = {example.strangers};
    for (const int count : example.counts) {
      offsets.push_back(offsets.back() + count);
    }
    call.new_offsets = upload_list(DataType::int32, offsets, buffers, stream);
  }
  if (example.has_table()) {
    call.block_table =
        upload(contiguous_view(nullptr, DataType::int32, {example.batch(), example.columns}), table,
               buffers, stream);
    call.seq_lens = upload_list(DataType::int32, example.seq_lens, buffers, stream);
    return;
  }
  const std::vector<std::int64_t> slots = make_slots(example, places);
  call.slot_mapping =
      example.form == AppendForm::narrow_slots
          ? upload_list(DataType::int32, std::vector<int>(slots.begin(), slots.end()), buffers,
                        stream)
          : upload_list(DataType::int64, slots, buffers, stream);
}

// The caches after the write.
struct Caches {
  Bytes k;
  Bytes v;
};

Caches run_on_gpu(const AppendExample& example, const Sides& sides) {
  const DeviceStream stream(0);
  std::vector<DeviceBuffer> buffers;
  AppendKvCacheCall call;
  call.k_cache = upload(sides.k.cache_view, sides.k.cache, buffers, stream);
  call.k_new = upload(sides.k.rows_view, sides.k.rows, buffers, stream);
  if (!example.is_latent()) {
    call.v_cache = upload(sides.v.cache_view, sides.v.cache, buffers, stream);
    call.v_new = upload(sides.v.rows_view, sides.v.rows, buffers, stream);
  }
  if (example.cache.scales_kv != ScaleGrain::none) {
    call.k_scale = upload(sides.k.scales_view, sides.k.scales, buffers, stream);
    if (!example.is_latent()) {
      call.v_scale = upload(sides.v.scales_view, sides.v.scales, buffers, stream);
    }
  }
  upload_places(example, call, buffers, stream);
  const auto kernel = gpu_runtime().prepare_append(example.cache, 0);
  if (example.is_captured) {
    DeviceBuffer lengths(0, example.seq_lens.size() * sizeof(int));
    lengths.fill(0, stream.handle());
    call.seq_lens.data = lengths.data();
    const DeviceGraph graph(stream, [&] { append_kv_cache(*kernel, call, stream.handle()); });
    lengths.upload(example.seq_lens.data(), lengths.bytes(), stream.handle());
    graph.launch(stream);
    stream.synchronize();
  } else {
    append_kv_cache(*kernel, call, stream.handle());
  }
  return {download_values<unsigned char>(buffers[0], sides.k.cache.size(), stream.handle()),
          example.is_latent()
              ? Bytes()
              : download_values<unsigned char>(buffers[2], sides.v.cache.size(), stream.handle())};
}

int count_differences(const Bytes& wanted, const Bytes& got) {
  int differences = wanted.size() == got.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(wanted.size(), got.size()); ++i) {
    differences += wanted[i] != got[i];
  }
  return differences;
}

Sides make_sides(const AppendExample& example) {
  return {make_side(example, example.cache.head_dim_qk),
          example.is_latent() ? AppendSide() : make_side(example, example.cache.head_dim_v)};
}

void check_example(const AppendExample& example) {
  INFO(example.name);
  const Sides sides = make_sides(example);
  const std::vector<AppendPlace> places = make_places(example, make_table(example));
  const Caches got = run_on_gpu(example, sides);
  const Bytes k = expected_cache(example, sides.k, places, example.cache.head_dim_qk);
  CHECK(k != sides.k.cache);
  CHECK(count_differences(k, got.k) == 0);
  if (!example.is_latent()) {
    const Bytes v = expected_cache(example, sides.v, places, example.cache.head_dim_v);
    CHECK(v != sides.v.cache);
    CHECK(count_differences(v, got.v) == 0);
  }
}

TEST_CASE("new tokens lie where the block table says, and nothing else in the cache changes") {
  const AttentionDescriptor gqa = cache_of(4, 128, 128, 16);
  const AttentionDescriptor hnd = with_tag(gqa, KvLayoutTag::hnd);
  const AttentionDescriptor uneven = cache_of(3, 192, 128, 16);
  const AttentionDescriptor fp16 = with_types(gqa, DataType::fp16, DataType::fp16);
  const std::vector<int> one_each = {1, 1, 1, 1, 1};
  const std::vector<int> lengths = {1, 16, 17, 80, 33};
  const std::vector<AppendExample> examples = {
      {.name = "ragged", .cache = gqa},
      {.name = "hnd", .cache = hnd},
      {.name = "fp16, uneven dims, layered",
       .cache = with_types(uneven, DataType::fp16, DataType::fp16),
       .padding = 8},
      {.name = "more tokens than keys", .cache = gqa, .seq_lens = {1, 0, 0, 30, 0, 17}},
      {.name = "tokens of no request", .cache = gqa, .strangers = 5},
      {.name = "missing pages", .cache = gqa, .has_missing_pages = true},
      {.name = "past the table", .cache = gqa, .seq_lens = {90, 0, 200, 85, 9, 2147483647}},
      {.name = "caches apart", .cache = hnd, .padding = 16, .has_caches_apart = true},
      {.name = "dense",
       .cache = gqa,
       .form = AppendForm::dense,
       .counts = one_each,
       .seq_lens = lengths},
      {.name = "dense, several",
       .cache = fp16,
       .form = AppendForm::dense,
       .counts = {4, 4, 4, 4, 4},
       .seq_lens = lengths,
       .padding = 8,
       .has_caches_apart = true},
      {.name = "captured", .cache = gqa, .is_captured = true},
  };
  for (const AppendExample& example : examples) {
    check_example(example);
  }
}

TEST_CASE("pages of any size take new tokens, whole heads or latents") {
  for (const int page_size : {1, 2, 7, 16, 48, 64, 100, 256}) {
    AppendExample example = {.name = "pages of " + std::to_string(page_size),
                             .cache = cache_of(2, 64, 80, page_size)};
    example.columns = (70 + page_size - 1) / page_size;
    check_example(example);
    example.cache = latent_cache(page_size);
    example.padding = 8;
    check_example(example);
  }
  check_example({.name = "the least row", .cache = cache_of(1, 8, 8, 16)});
  check_example({.name = "the widest rows", .cache = cache_of(8, 512, 512, 16)});
}

TEST_CASE("new tokens lie in their slots, and those of negative slots nowhere") {
  const AttentionDescriptor gqa = cache_of(4, 128, 128, 16);
  const std::vector<int> four_each = {4, 4, 4};
  const std::vector<int> lengths = {5, 2, 60};
  const std::vector<AppendExample> examples = {
      {.name = "slots",
       .cache = gqa,
       .form = AppendForm::slots,
       .strangers = 2,
       .has_missing_pages = true},
      {.name = "32-bit slots",
       .cache = gqa,
       .form = AppendForm::narrow_slots,
       .strangers = 2,
       .has_missing_pages = true},
      {.name = "latent slots", .cache = latent_cache(64), .form = AppendForm::slots},
      {.name = "slots of caches apart",
       .cache = gqa,
       .form = AppendForm::ragged_slots,
       .strangers = 1,
       .has_caches_apart = true},
      {.name = "dense slots of caches apart",
       .cache = gqa,
       .form = AppendForm::dense_slots,
       .counts = four_each,
       .seq_lens = lengths,
       .has_caches_apart = true},
  };
  for (const AppendExample& example : examples) {
    check_example(example);
  }
}

TEST_CASE("fp8 caches hold the nearest codes of every value over its scale") {
  const AttentionDescriptor gqa = cache_of(8, 128, 128, 16);
  for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
    for (const DataType dtype_kv : {DataType::fp8_e4m3, DataType::fp8_e5m2}) {
      for (const ScaleGrain scales :
           {ScaleGrain::none, ScaleGrain::per_tensor, ScaleGrain::per_head}) {
        AppendExample example = {
            .name = std::string(to_string(dtype)) + " to " + std::string(to_string(dtype_kv)),
            .cache = with_types(gqa, dtype, dtype_kv, scales),
            .counts = {0, 80},
            .seq_lens = {10, 80},
        };
        check_example(example);
        example.cache = with_types(latent_cache(64), dtype, dtype_kv, scales);
        check_example(example);
      }
    }
  }
  const AttentionDescriptor scaled =
      with_types(gqa, DataType::bf16, DataType::fp8_e4m3, ScaleGrain::per_head);
  check_example({.name = "scales per request", .cache = scaled, .has_scales_apart = true});
  check_example({.name = "scales per request, slots",
                 .cache = scaled,
                 .form = AppendForm::ragged_slots,
                 .has_scales_apart = true});
}

TEST_CASE("more requests and thread blocks than a grid is high") {
  AppendExample example = {.name = "70000 requests of 128 tokens", .cache = cache_of(1, 8, 8, 128)};
  example.counts.assign(70000, 128);
  example.seq_lens.assign(70000, 128);
  example.columns = 1;
  check_example(example);
}

TEST_CASE("a page more than 2^31 elements from the first is written where it lies") {
  const DeviceStream stream(0);
  const AttentionDescriptor cache = latent_cache(64);
  const std::int64_t page = (std::int64_t{1} << 31) + 64;
  const std::size_t row = 576 * 2;
  DeviceBuffer pool(0, static_cast<std::size_t>(page) * 2 + 64 * row);
  pool.fill(0x5a, stream.handle());
  const std::vector<std::int64_t> slots = {64 + 63};
  const std::vector<unsigned char> values(row, 0x3c);
  std::vector<DeviceBuffer> buffers;
  AppendKvCacheCall call;
  call.k_cache = contiguous_view(pool.data(), DataType::bf16, {2, 64, 1, 576});
  call.k_cache.strides[0] = page;
  call.k_new =
      upload(contiguous_view(nullptr, DataType::bf16, {1, 1, 576}), values, buffers, stream);
  call.slot_mapping = upload_list(DataType::int64, slots, buffers, stream);
  append_kv_cache(*gpu_runtime().prepare_append(cache, 0), call, stream.handle());
  stream.synchronize();
  Bytes rows(2 * row);
  download_device_memory(static_cast<char*>(pool.data()) + page * 2 + 62 * row, rows.data(),
                         rows.size(), stream);
  Bytes wanted(2 * row, 0x5a);
  std::fill(wanted.begin() + row, wanted.end(), 0x3c);
  CHECK(rows == wanted);
}

TEST_CASE("a cache write prepared for another operation's descriptor is refused") {
  const AttentionDescriptor decode;
  CHECK_THROWS_AS(gpu_runtime().prepare_append(decode, 0), DescriptorError);
  CHECK_THROWS_AS(gpu_runtime().prepare_decode(latent_cache(64), 0), DescriptorError);
  CHECK_THROWS_AS(gpu_runtime().prepare_merge(latent_cache(64), 0), DescriptorError);
}

}  // namespace
}  // namespace attnjit
