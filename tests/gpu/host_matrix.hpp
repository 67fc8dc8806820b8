// Matrices of narrow floating-point elements on the host, for tests of single instructions: values
// that the element type holds exactly, their bits, products in fp64. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

// Row-major.
struct HostMatrix {
  HostMatrix(int num_rows, int num_columns)
      : rows(num_rows),
        columns(num_columns),
        values(static_cast<std::size_t>(num_rows) * static_cast<std::size_t>(num_columns)) {}

  double& at(int row, int column) { return values.at(index(row, column)); }
  double at(int row, int column) const { return values.at(index(row, column)); }

  std::size_t index(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
  }

  int rows;
  int columns;
  std::vector<double> values;
};

// The bits of the value of `dtype` (bf16, fp16, fp8_e4m3) nearest to `value`, ties to even, and
// back. Values beyond the largest finite one become that.
std::uint16_t encode_element(DataType dtype, double value);
double decode_element(DataType dtype, std::uint16_t bits);

// Integers from -limit to limit.
HostMatrix random_integers(int rows, int columns, int limit, std::uint64_t seed);

// N(0, 1), rounded to `dtype`.
HostMatrix random_normal(int rows, int columns, DataType dtype, std::uint64_t seed);

// Its elements as they lie in memory.
std::vector<std::uint8_t> to_bytes(const HostMatrix& matrix, DataType dtype);

}  // namespace attnjit
