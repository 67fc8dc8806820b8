// One product d [64, n] = a [64, k] * b [k, n] by wgmma on the GPU, from operands laid out in
// memory and described as device/matrix_descriptor_sm90.cuh says, held against fp64.
#pragma once

#include <string>

#include "attnjit/attention_descriptor.hpp"
#include "unit_kernel.hpp"

namespace attnjit::sm90 {

// Where an operand lies. `k`: its rows (A's) or columns (B's) are contiguous in memory; `mn`: its
// other dimension is.
enum class Source { k_major, mn_major, registers };

struct OperandCase {
  Source source = Source::k_major;
  Swizzle swizzle = Swizzle::b128;
  int first_row = 0;     // of the box: rows before it are copied too, and not multiplied
  int first_column = 0;  // of an MN-major box
  int misalignment = 0;  // bytes past 1024 * i where the box goes, a multiple of 128
};

struct ProductCase {
  DataType dtype = DataType::bf16;
  int n = 64;
  int k = 64;
  OperandCase a = {};
  OperandCase b = {};
};

// "bf16 64x64x576, a k-major b128, b mn-major b64 row 8"
std::string to_string(const ProductCase& product);

struct ProductErrors {
  int wrong_integers = 0;   // elements of a product of small integers that are not exact
  double worst_normal = 0;  // error of N(0, 1) data over what the accumulator's precision allows
};

// Runs the product with both kinds of data.
ProductErrors run_product(const ProductCase& product, const DeviceStream& stream);

}  // namespace attnjit::sm90
