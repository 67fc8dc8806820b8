// Both products of a decode step with tokens on M, from one tile of K whose first columns are V:
// scores, probabilities through shared memory by stmatrix, output. Held against fp64.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"
#include "host_matrix.hpp"
#include "unit_kernel.hpp"

namespace attnjit::sm90 {
namespace {

constexpr int tokens = 64;
constexpr int columns = 576;
constexpr int value_columns = 512;

struct Products {
  std::vector<float> s;    // [tokens, heads]
  std::vector<float> out;  // [value_columns, heads]
};

// One instruction per page: columns of a box, tokens, boxes.
TensorMap encode_tile(DataType dtype, const DeviceBuffer& tile) {
  TensorMapShape shape;
  shape.dtype = dtype;
  shape.rank = 3;
  shape.extents = {64, tokens, columns / 64};
  shape.strides_bytes = {columns * 2, 128};
  shape.box = {64, tokens, columns / 64};
  shape.swizzle = Swizzle::b128;
  return encode(shape, tile);
}

Products compute_on_gpu(DataType dtype, const HostMatrix& k, const HostMatrix& q,
                        const DeviceStream& stream) {
  const UnitKernel kernel("swapped_products", 128, unit_shared_bytes,
                          fmt::format("#include \"device/config_types.cuh\"\n"
                                      "namespace unit_case {{\n"
                                      "constexpr DataType type = DataType::{};\n"
                                      "constexpr int n = {};\n"
                                      "}}\n",
                                      to_string(dtype), q.rows));
  const DeviceBuffer k_memory = upload(to_bytes(k, dtype), stream);
  const DeviceBuffer q_memory = upload(to_bytes(q, dtype), stream);
  const auto score_count = static_cast<std::size_t>(tokens * q.rows);
  const auto out_count = static_cast<std::size_t>(value_columns * q.rows);
  const DeviceBuffer s = upload(std::vector<float>(score_count, NAN), stream);
  const DeviceBuffer out = upload(std::vector<float>(out_count, NAN), stream);
  SwappedArguments arguments{};
  arguments.k_map = encode_tile(dtype, k_memory);
  arguments.q_map = encode_matrix(dtype, q.rows, columns, q.rows, 64, Swizzle::b128, q_memory);
  arguments.s = static_cast<float*>(s.data());
  arguments.out = static_cast<float*>(out.data());
  kernel.launch(1, &arguments, stream);
  return {download_values<float>(s, score_count, stream.handle()),
          download_values<float>(out, out_count, stream.handle())};
}

// The worst error over the precision of the sum of magnitudes; infinite for what is not finite.
struct Worst {
  double value = 0;

  void add(float computed, double exact, double magnitude) {
    const double error = std::abs(static_cast<double>(computed) - exact) / (magnitude * 0x1p-20);
    value = std::isfinite(computed) ? std::max(value, error) : HUGE_VAL;
  }
};

double worst_score_error(const Products& products, const HostMatrix& k, const HostMatrix& q) {
  Worst worst;
  for (int token = 0; token < tokens; ++token) {
    for (int head = 0; head < q.rows; ++head) {
      double exact = 0;
      double magnitude = 0;
      for (int column = 0; column < columns; ++column) {
        exact += k.at(token, column) * q.at(head, column);
        magnitude += std::abs(k.at(token, column) * q.at(head, column));
      }
      worst.add(products.s[static_cast<std::size_t>(token * q.rows + head)], exact, magnitude);
    }
  }
  return worst.value;
}

// From the scores that the GPU computed, rounded as it rounds them.
double worst_output_error(const Products& products, DataType dtype, const HostMatrix& k,
                          int heads) {
  HostMatrix p(tokens, heads);
  std::transform(products.s.begin(), products.s.end(), p.values.begin(), [&](float score) {
    return decode_element(dtype, encode_element(dtype, static_cast<double>(score)));
  });
  Worst worst;
  for (int column = 0; column < value_columns; ++column) {
    for (int head = 0; head < heads; ++head) {
      double exact = 0;
      double magnitude = 0;
      for (int token = 0; token < tokens; ++token) {
        exact += k.at(token, column) * p.at(token, head);
        magnitude += std::abs(k.at(token, column) * p.at(token, head));
      }
      worst.add(products.out[static_cast<std::size_t>(column * heads + head)], exact, magnitude);
    }
  }
  return worst.value;
}

TEST_CASE("scores and output with tokens on M come from one tile of K") {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
    for (const int heads : {8, 16, 32}) {
      INFO(to_string(dtype) << ", " << heads << " heads");
      const HostMatrix k = random_normal(tokens, columns, dtype, 3);
      const HostMatrix q = random_normal(heads, columns, dtype, 4);
      const Products products = compute_on_gpu(dtype, k, q, stream);
      CHECK(worst_score_error(products, k, q) < 1);
      CHECK(worst_output_error(products, dtype, k, heads) < 1);
    }
  }
}

}  // namespace
}  // namespace attnjit::sm90
