// flare_mla_prefill of fp8 tensors on the GPU, with and without scales, against attention in fp64
// over what they stand for. Rows, slots and scales of nobody are NaN.
#include "attnjit/flare_mla_prefill.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "catch.hpp"
#include "gpu_runtime.hpp"
#include "rope_fp8_example.hpp"
#include "rope_result.hpp"

namespace attnjit {
namespace {

using namespace test;

constexpr DataType bf16 = DataType::bf16;
constexpr DataType e4m3 = DataType::fp8_e4m3;

Bytes bytes_of(const std::vector<float>& values) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
  return {first, first + values.size() * sizeof(float)};
}

// Memory of a call's inputs, kept until it has run.
class Inputs {
 public:
  explicit Inputs(CUstream_st* stream) : stream_(stream) {}

  TensorView add(TensorView view, const Bytes& bytes) {
    buffers_.push_back(make_device_buffer<std::uint8_t>(0, bytes, stream_));
    view.data = buffers_.back().data();
    return view;
  }

  TensorView add(const Numbers& numbers, std::initializer_list<std::int64_t> shape) {
    buffers_.push_back(make_device_buffer<int>(0, numbers, stream_));
    return contiguous_view(buffers_.back().data(), DataType::int32, shape);
  }

 private:
  CUstream_st* stream_;
  std::vector<DeviceBuffer> buffers_;
};

void add_scales(const RopeFp8Example& example, const RopeFp8Tensors& tensors, const KeyChunk& chunk,
                const CacheRows& places, Inputs& inputs, FlareMlaPrefillCall& call) {
  const RopeExample& shape = example.shape;
  constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  const auto view = [](std::int64_t rows) {
    return contiguous_view(nullptr, DataType::fp32, {rows, 1});
  };
  if (example.scales == FlareScales::per_token) {
    call.q_scale = inputs.add(view(shape.total_queries()), bytes_of(tensors.q_scales));
    call.k_scales = inputs.add(view(call.k.shape[0]),
                               chunk_rows(shape, chunk, bytes_of(tensors.k_scales), float_bytes));
  } else if (example.scales == FlareScales::rope_blocks) {
    const std::int64_t width = shape.width / columns_per_scale;
    call.k_rope_scales = inputs.add(
        cache_view(shape, places, DataType::fp32, width),
        cache_bytes(places, bytes_of(tensors.rope_scales),
                    shape.rope_columns() / columns_per_scale * float_bytes, width * float_bytes));
  }
}

void add_keys(const RopeFp8Example& example, const RopeFp8Tensors& tensors, const KeyChunk& chunk,
              const CacheRows& places, Inputs& inputs, FlareMlaPrefillCall& call) {
  const RopeExample& shape = example.shape;
  const Numbers rows = row_offsets(shape, chunk);
  const TensorView key_rows =
      contiguous_view(nullptr, example.dtype, {rows.back(), shape.heads, shape.depth});
  const std::int64_t key_bytes =
      std::int64_t{shape.heads} * shape.depth * size_bytes(example.dtype);
  call.k =
      inputs.add(key_rows, chunk_rows(shape, chunk, to_bytes(tensors.k, example.dtype), key_bytes));
  call.v =
      inputs.add(key_rows, chunk_rows(shape, chunk, to_bytes(tensors.v, example.dtype), key_bytes));
  const std::int64_t rope_bytes = size_bytes(example.dtype_rope);
  call.k_rope =
      inputs.add(cache_view(shape, places, example.dtype_rope, shape.width),
                 cache_bytes(places, to_bytes(tensors.rope, example.dtype_rope),
                             shape.rope_columns() * rope_bytes, shape.width * rope_bytes));
  call.cache_row_offsets = inputs.add(rows, {shape.batch() + 1});
  if (shape.is_paged()) {
    call.block_table = inputs.add(places.table, {shape.batch(), places.columns});
    call.cache_lengths = inputs.add(shape.cached(), {shape.batch()});
  }
  if (std::any_of(chunk.begin.begin(), chunk.begin.end(), [](int first) { return first > 0; })) {
    call.cache_offsets = inputs.add(chunk.begin, {shape.batch()});
  }
}

enum class Scales { given, left_out };

RopeResult run(const RopeFp8Example& example, const RopeFp8Tensors& tensors, const KeyChunk& chunk,
               Scales scales = Scales::given) {
  const RopeExample& shape = example.shape;
  const DeviceStream stream(0);
  Inputs inputs(stream.handle());
  const CacheRows places = place_rows(shape);
  const RopeOutputs outputs(shape, stream.handle());
  FlareMlaPrefillCall call;
  call.output = outputs.out;
  call.lse = outputs.lse;
  const auto rows = [&](DataType dtype, std::int64_t columns) {
    return contiguous_view(nullptr, dtype, {shape.total_queries(), shape.heads, columns});
  };
  call.q = inputs.add(rows(example.dtype, tensors.q.columns), to_bytes(tensors.q, example.dtype));
  if (example.has_q_rope()) {
    call.q_rope = inputs.add(rows(bf16, shape.rope_columns()), to_bytes(tensors.q_rope, bf16));
  }
  call.valid_length = inputs.add(offsets_of(shape.queries), {shape.batch() + 1});
  add_keys(example, tensors, chunk, places, inputs, call);
  if (scales == Scales::given) {
    add_scales(example, tensors, chunk, places, inputs, call);
  }
  call.scale = static_cast<float>(example.softmax_scale());
  const auto kernel =
      gpu_runtime().prepare_prefill(flare_mla_prefill_descriptor(example.call_shape()), 0);
  flare_mla_prefill(*kernel, call, stream.handle());
  return outputs.download(stream.handle());
}

// The squared distance of the outputs, relative to their squares; the largest of two LSEs, infinite
// where one sees keys and the other none.
struct Distance {
  double out;
  double lse;
};

Distance distance_of(const RopeExample& shape, const RopeResult& result,
                     const HostResult& expected) {
  double squares = 0;
  double differences = 0;
  Distance distance = {0, 0};
  for (std::size_t i = 0; i < result.out.size(); ++i) {
    const double x = from_bf16(result.out[i]);
    const double y = expected.out.at(i);
    differences += (x - y) * (x - y);
    squares += x * x + y * y;
  }
  for (int query = 0; query < shape.total_queries(); ++query) {
    for (int head = 0; head < shape.heads; ++head) {
      const double x =
          result.lse.at(static_cast<std::size_t>(head * shape.total_queries() + query));
      const double y = expected.lse.at(static_cast<std::size_t>(query * shape.heads + head));
      distance.lse = std::max(distance.lse, x == y ? 0.0 : std::abs(x - y));
    }
  }
  distance.out = differences / squares;
  return distance;
}

// Probabilities and outputs are rounded to bf16, by at most 1/512 of their values: in all less than
// 2e-6 of the squares; merged, once more.
constexpr double rounding = 1e-5;
constexpr double lse_rounding = 1e-4;

void check_close(const RopeFp8Example& example, const RopeResult& result,
                 const HostResult& expected) {
  const Distance distance = distance_of(example.shape, result, expected);
  INFO(describe(example) << ": " << distance.out << ", " << distance.lse);
  CHECK(is_written(result));
  CHECK(distance.out < rounding);
  CHECK(distance.lse < lse_rounding);
}

void check_against_fp64(const RopeFp8Example& example) {
  const RopeFp8Tensors tensors(example);
  check_close(example, run(example, tensors, all_keys(example.shape)),
              expected_result(example, tensors));
}

// Of one kind of types and scales: lengths, caches and heads that differ.
std::vector<RopeExample> shapes() {
  return {
      {},
      {.page_size = 1, .width = 64},
      {.heads = 1, .page_size = 16, .mask = MaskKind::none},
      {.q_depth = 256, .depth = 128, .page_size = 128},
      {.page_size = 3, .queries = {0, 128, 64, 0}, .keys = {0, 129, 64, 7}},
      dense_example({}),
      dense_example({.heads = 5, .width = 64, .queries = {150, 0, 149, 1}}),
      dense_example({.q_depth = 128, .depth = 64, .mask = MaskKind::none}),
  };
}

void check_shapes(RopeFp8Example example) {
  for (const RopeExample& shape : shapes()) {
    example.shape = shape;
    check_against_fp64(example);
  }
}

TEST_CASE("an fp8 rope beside bf16 keys is what it stands for, paged and dense") {
  check_shapes({});
}

TEST_CASE("queries, keys, values and rope in e4m3 give a bf16 output") {
  check_shapes({.dtype = e4m3});
}

TEST_CASE("e4m3 beside a bf16 rope gives a bf16 output") {
  check_against_fp64({.dtype = e4m3, .dtype_rope = bf16});
}

TEST_CASE("scales of the rope's blocks multiply its columns, rounded to bf16 once") {
  check_shapes({.scales = FlareScales::rope_blocks});
  check_against_fp64({.dtype = e4m3, .scales = FlareScales::rope_blocks});
}

TEST_CASE("scales of tokens multiply the products of q and k, those of their rope too") {
  check_shapes({.dtype = e4m3, .dtype_rope = bf16, .scales = FlareScales::per_token});
}

TEST_CASE("scales that are left out are seen missing") {
  for (const RopeFp8Example& example :
       {RopeFp8Example{.scales = FlareScales::rope_blocks},
        RopeFp8Example{.dtype = e4m3, .dtype_rope = bf16, .scales = FlareScales::per_token}}) {
    const RopeFp8Tensors tensors(example);
    const Distance distance =
        distance_of(example.shape, run(example, tensors, all_keys(example.shape), Scales::left_out),
                    expected_result(example, tensors));
    CHECK(distance.out > 100 * rounding);
    CHECK(distance.lse > 100 * lse_rounding);
  }
}

TEST_CASE("chunks of fp8 keys with their scales merge into attention over all of them") {
  for (const RopeExample& shape : {RopeExample{}, dense_example({.mask = MaskKind::none})}) {
    for (const RopeFp8Example& example :
         {RopeFp8Example{.shape = shape, .scales = FlareScales::rope_blocks},
          RopeFp8Example{.shape = shape,
          .dtype = e4m3,
          .dtype_rope = bf16,
          .scales = FlareScales::per_token}}) {
      const RopeFp8Tensors tensors(example);
      std::vector<RopeResult> parts;
      for (const KeyChunk& chunk : two_chunks(shape)) {
        parts.push_back(run(example, tensors, chunk));
        CHECK(is_written(parts.back()));
      }
      check_close(example, merge_results(shape, parts), expected_result(example, tensors));
    }
  }
}

}  // namespace
}  // namespace attnjit
