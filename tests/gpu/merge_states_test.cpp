// Merging states on the GPU against the definition in fp64 on the host: every layout, parts without
// keys, results in the place of a part.
#include "attnjit/merge_states.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/device_memory.hpp"
#include "catch.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"

namespace attnjit {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::uint16_t nan_bits = 0xffff;  // a NaN of both element types

struct Example {
  DataType dtype = DataType::bf16;
  int tokens = 37;
  int heads = 5;
  int head_dim = 128;
  int parts = 3;
  int padding = 0;            // columns behind each head
  bool lse_by_heads = false;  // [num_heads, tokens] in memory
  int result_part = -1;       // whose place the result takes
  float lse_offset = 0.0f;    // of all parts
  bool has_parts_without_keys = false;

  int rows() const { return tokens * heads; }
  int pitch() const { return head_dim + padding; }
  std::size_t place(int row, int column) const {
    return static_cast<std::size_t>(row) * pitch() + column;
  }
  // Rows are tokens, then heads.
  std::size_t lse_place(int row) const {
    return lse_by_heads ? row % heads * static_cast<std::size_t>(tokens) + row / heads : row;
  }
  // Some rows have no key in some parts, some in none.
  bool has_keys(int part, int row) const {
    return !has_parts_without_keys || (row % 11 != 3 && (row + part) % 4 != 0);
  }
};

std::string describe(const Example& example) {
  return std::string(to_string(example.dtype)) + ", " + std::to_string(example.tokens) +
         " tokens, " + std::to_string(example.heads) + " heads, " +
         std::to_string(example.head_dim) + " columns, " + std::to_string(example.parts) +
         " parts, result in " + std::to_string(example.result_part);
}

// Of finite fp16 numbers, 0 and subnormal ones too.
double from_fp16(std::uint16_t bits) {
  const int exponent = bits / 1024 % 32;
  const double magnitude =
      std::ldexp((exponent == 0 ? 0 : 1024) + bits % 1024, std::max(exponent, 1) - 25);
  return bits < 0x8000 ? magnitude : -magnitude;
}

struct Part {
  std::vector<std::uint16_t> out;
  std::vector<float> lse;
};

// Values of magnitude 1/8 to 16; NaN between the rows and where a part has no key.
Part make_part(const Example& example, int index) {
  std::mt19937 random(static_cast<unsigned>(index) + 1);
  Part part;
  part.out.assign(static_cast<std::size_t>(example.rows()) * example.pitch(), nan_bits);
  part.lse.resize(static_cast<std::size_t>(example.rows()));
  for (int row = 0; row < example.rows(); ++row) {
    const bool has_keys = example.has_keys(index, row);
    const float lse = static_cast<float>(random() % 4096) / 512.0f - 4.0f + example.lse_offset;
    part.lse[example.lse_place(row)] = has_keys ? lse : row % 2 == 0 ? infinity : -infinity;
    for (int column = 0; column < example.head_dim; ++column) {
      const unsigned bits = static_cast<unsigned>(random());
      const unsigned exponent = bits % 7;
      const std::uint16_t sign = bits / 8 % 2 == 0 ? 0 : 0x8000;
      const std::uint16_t value =
          example.dtype == DataType::bf16
              ? static_cast<std::uint16_t>((124 + exponent) << 7 | bits / 16 % 128)
              : static_cast<std::uint16_t>((12 + exponent) << 10 | bits / 16 % 1024);
      if (has_keys) {
        part.out[example.place(row, column)] = static_cast<std::uint16_t>(value | sign);
      }
    }
  }
  return part;
}

double decode(const Example& example, std::uint16_t bits) {
  return example.dtype == DataType::bf16 ? from_bf16(bits) : from_fp16(bits);
}

double merged_lse(const Example& example, const std::vector<Part>& parts, int row) {
  double maximum = -infinity;
  double sum = 0;
  for (int i = 0; i < example.parts; ++i) {
    if (example.has_keys(i, row)) {
      maximum = std::max<double>(maximum, parts[i].lse[example.lse_place(row)]);
    }
  }
  for (int i = 0; i < example.parts; ++i) {
    if (example.has_keys(i, row)) {
      sum += std::exp(parts[i].lse[example.lse_place(row)] - maximum);
    }
  }
  return sum == 0 ? -infinity : maximum + std::log(sum);
}

double merged_value(const Example& example, const std::vector<Part>& parts, int row, int column,
                    double lse) {
  double value = 0;
  for (int i = 0; i < example.parts; ++i) {
    if (example.has_keys(i, row)) {
      value += std::exp(parts[i].lse[example.lse_place(row)] - lse) *
               decode(example, parts[i].out[example.place(row, column)]);
    }
  }
  return value;
}

TensorView out_view(const Example& example, void* data) {
  TensorView view =
      contiguous_view(data, example.dtype, {example.tokens, example.heads, example.head_dim});
  view.strides = {example.heads * std::int64_t{example.pitch()}, example.pitch(), 1};
  return view;
}

TensorView lse_view(const Example& example, void* data) {
  return example.lse_by_heads
             ? permuted_view(contiguous_view(data, DataType::fp32, {example.heads, example.tokens}),
                             {1, 0})
             : contiguous_view(data, DataType::fp32, {example.tokens, example.heads});
}

Part run_on_gpu(const Example& example, const std::vector<Part>& parts) {
  const DeviceStream stream(0);
  std::vector<DeviceBuffer> buffers;
  std::vector<PartialAttention> partials;
  for (const Part& part : parts) {
    buffers.push_back(make_device_buffer<std::uint16_t>(0, part.out, stream.handle()));
    void* const out = buffers.back().data();
    buffers.push_back(make_device_buffer<float>(0, part.lse, stream.handle()));
    partials.push_back({out_view(example, out), lse_view(example, buffers.back().data())});
  }
  DeviceBuffer out(0, parts[0].out.size() * 2);
  DeviceBuffer lse(0, parts[0].lse.size() * 4);
  out.fill(0xff, stream.handle());
  lse.fill(0xff, stream.handle());
  MergeStatesCall call{partials, out_view(example, out.data()), lse_view(example, lse.data())};
  if (example.result_part >= 0) {
    call.out = partials[static_cast<std::size_t>(example.result_part)].out;
    call.lse = partials[static_cast<std::size_t>(example.result_part)].lse;
  }
  merge_attention_states(
      *gpu_runtime().prepare_merge(merge_states_descriptor(example.head_dim, example.dtype), 0),
      call, stream.handle());
  const std::size_t first = 2 * static_cast<std::size_t>(std::max(example.result_part, 0));
  const bool is_in_place = example.result_part >= 0;
  return {download_values<std::uint16_t>(is_in_place ? buffers[first] : out, parts[0].out.size(),
                                         stream.handle()),
          download_values<float>(is_in_place ? buffers[first + 1] : lse, parts[0].lse.size(),
                                 stream.handle())};
}

// How often a value, an LSE or the padding is not what it must be.
int count_errors(const Example& example, const std::vector<Part>& parts, const Part& result) {
  // Half a unit in the last place of 8 or 11 significant bits, relative to the least significand.
  const double half_unit = example.dtype == DataType::bf16 ? 1.0 / 256 : 1.0 / 2048;
  int errors = 0;
  for (int row = 0; row < example.rows(); ++row) {
    const double lse = merged_lse(example, parts, row);
    const double got = result.lse[example.lse_place(row)];
    const double tolerance = 4e-6 + 2e-7 * std::abs(lse);
    errors += std::isinf(lse) ? got != lse : !(std::abs(got - lse) <= tolerance);
    for (int column = 0; column < example.pitch(); ++column) {
      const std::uint16_t bits = result.out[example.place(row, column)];
      if (column >= example.head_dim) {
        errors += bits != nan_bits;
        continue;
      }
      const double value = merged_value(example, parts, row, column, lse);
      errors += !(std::abs(decode(example, bits) - value) <= 2e-5 + half_unit * std::abs(value));
    }
  }
  return errors;
}

TEST_CASE("merged states agree with the definition in fp64") {
  const std::vector<Example> examples = {
      {},
      {.dtype = DataType::fp16},
      {.parts = 1},
      {.parts = 32},
      {.tokens = 1, .heads = 1, .head_dim = 8, .parts = 2},
      {.tokens = 1000, .heads = 16, .head_dim = 512, .parts = 2},
      {.head_dim = 64, .padding = 8, .lse_by_heads = true},
      {.dtype = DataType::fp16, .head_dim = 80, .padding = 24, .result_part = 1},
      {.head_dim = 576, .result_part = 0, .has_parts_without_keys = true},
      {.heads = 1, .lse_by_heads = true, .has_parts_without_keys = true},
      {.dtype = DataType::fp16, .parts = 7, .has_parts_without_keys = true},
      {.parts = 4, .lse_offset = 1e4f},
      {.parts = 4, .lse_offset = -1e4f},
      {.parts = 1, .has_parts_without_keys = true},
  };
  for (const Example& example : examples) {
    std::vector<Part> parts;
    for (int i = 0; i < example.parts; ++i) {
      parts.push_back(make_part(example, i));
    }
    INFO(describe(example));
    CHECK(count_errors(example, parts, run_on_gpu(example, parts)) == 0);
  }
}

TEST_CASE("another part's result does not pass for the merged one") {
  const Example example;
  const std::vector<Part> parts = {make_part(example, 0), make_part(example, 1),
                                   make_part(example, 2)};
  CHECK(count_errors(example, parts, parts[0]) > example.rows());
}

TEST_CASE("a merge prepared for a decode's descriptor is refused") {
  AttentionDescriptor decode;
  CHECK_THROWS_AS(gpu_runtime().prepare_merge(decode, 0), DescriptorError);
  CHECK_THROWS_AS(gpu_runtime().prepare_decode(merge_states_descriptor(128), 0), DescriptorError);
}

}  // namespace
}  // namespace attnjit
