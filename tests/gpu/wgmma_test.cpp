// Every encoding of a wgmma operand that device/matrix_descriptor_sm90.cuh lists, from tiles that
// tensor copies wrote: exact on small integers, as precise as the accumulators on N(0, 1).
#include <vector>

#include "catch.hpp"
#include "wgmma_case.hpp"

namespace attnjit::sm90 {
namespace {

constexpr Swizzle all_swizzles[] = {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128};

void check_products(const std::vector<ProductCase>& products) {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  for (const ProductCase& product : products) {
    INFO(to_string(product));
    const ProductErrors errors = run_product(product, stream);
    CHECK(errors.wrong_integers == 0);
    CHECK(errors.worst_normal < 1);
  }
}

OperandCase mn_major(Swizzle swizzle) {
  return {.source = Source::mn_major, .swizzle = swizzle};
}

OperandCase k_major(Swizzle swizzle) {
  return {.source = Source::k_major, .swizzle = swizzle};
}

const OperandCase in_registers = {.source = Source::registers};

TEST_CASE("K-major operands multiply with every n") {
  std::vector<ProductCase> products;
  for (const int n : {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 176, 192, 256}) {
    products.push_back({.n = n, .k = n <= 64 ? 576 : 192});
  }
  check_products(products);
}

TEST_CASE("K-major operands multiply under every swizzle of A and of B") {
  std::vector<ProductCase> products;
  for (const Swizzle swizzle : all_swizzles) {
    products.push_back({.n = 16, .k = 576, .a = k_major(swizzle), .b = k_major(swizzle)});
    products.push_back({.n = 64, .k = 192, .a = k_major(swizzle)});
    products.push_back({.n = 64, .k = 192, .b = k_major(swizzle)});
    products.push_back({.n = 256, .k = 64, .b = k_major(swizzle)});
  }
  check_products(products);
}

TEST_CASE("an MN-major A multiplies under every swizzle") {
  std::vector<ProductCase> products;
  for (const int n : {8, 16, 32, 64, 128}) {
    products.push_back({.n = n, .k = 64, .a = mn_major(Swizzle::b128)});
    products.push_back({.n = n, .k = 128, .a = mn_major(Swizzle::b128)});
  }
  for (const Swizzle swizzle : all_swizzles) {
    products.push_back({.n = 64, .k = 128, .a = mn_major(swizzle)});
  }
  check_products(products);
}

TEST_CASE("an MN-major B multiplies under every swizzle") {
  std::vector<ProductCase> products;
  for (const int n : {16, 32, 64, 128, 256}) {
    for (const int k : {64, 80, 128, 176}) {
      products.push_back(
          {.n = n, .k = k, .a = k_major(Swizzle::b32), .b = mn_major(Swizzle::b128)});
    }
  }
  for (const int n : {64, 128, 256}) {
    for (const Swizzle swizzle : all_swizzles) {
      products.push_back({.n = n, .k = 128, .b = mn_major(swizzle)});
    }
  }
  check_products(products);
}

TEST_CASE("both operands may be MN-major") {
  check_products({{.n = 64, .k = 128, .a = mn_major(Swizzle::b128), .b = mn_major(Swizzle::b128)},
                  {.n = 64, .k = 128, .a = mn_major(Swizzle::b64), .b = mn_major(Swizzle::none)}});
}

TEST_CASE("A from registers multiplies a B of either major") {
  std::vector<ProductCase> products;
  for (const int n : {64, 128, 256}) {
    products.push_back({.n = n, .k = 128, .a = in_registers, .b = k_major(Swizzle::b128)});
    products.push_back({.n = n, .k = 64, .a = in_registers, .b = mn_major(Swizzle::b128)});
    products.push_back({.n = n, .k = 64, .a = in_registers, .b = mn_major(Swizzle::none)});
  }
  check_products(products);
}

TEST_CASE("fp16 operands multiply as bf16 ones do") {
  constexpr DataType fp16 = DataType::fp16;
  check_products({
      {.dtype = fp16, .n = 64, .k = 576},
      {.dtype = fp16, .n = 16, .k = 64, .a = mn_major(Swizzle::b128)},
      {.dtype = fp16, .n = 128, .k = 64, .b = mn_major(Swizzle::b128)},
      {.dtype = fp16, .n = 256, .k = 64, .a = in_registers, .b = mn_major(Swizzle::b128)},
      {.dtype = fp16, .n = 64, .k = 128, .a = in_registers},
  });
}

TEST_CASE("K-major e4m3 operands multiply under every swizzle and from registers") {
  constexpr DataType e4m3 = DataType::fp8_e4m3;
  std::vector<ProductCase> products = {
      {.dtype = e4m3, .n = 8, .k = 640},
      {.dtype = e4m3, .n = 64, .k = 640, .a = in_registers},
      {.dtype = e4m3, .n = 256, .k = 128, .a = in_registers},
  };
  for (const int n : {16, 64, 256}) {
    for (const Swizzle swizzle : all_swizzles) {
      products.push_back(
          {.dtype = e4m3, .n = n, .k = 256, .a = k_major(swizzle), .b = k_major(swizzle)});
    }
  }
  check_products(products);
}

TEST_CASE("an operand may start at any row of its box, and the box at any 128 bytes") {
  std::vector<ProductCase> products;
  for (const int row : {1, 2, 4, 8, 24, 64}) {
    ProductCase product = {.n = 64, .k = 192};
    product.a.first_row = row;
    products.push_back(product);
  }
  for (const Source source : {Source::k_major, Source::mn_major}) {
    for (const int misalignment : {128, 512}) {
      ProductCase product = {.n = 64, .k = 64};
      product.a = {.source = source, .misalignment = misalignment};
      product.b = {.source = source, .misalignment = 1024 - misalignment};
      products.push_back(product);
    }
  }
  ProductCase later_rows = {.n = 64, .k = 192};
  later_rows.b.first_row = 16;
  products.push_back(later_rows);
  check_products(products);
}

TEST_CASE("an MN-major B may start at any token and column of its box") {
  std::vector<ProductCase> products;
  for (const int token : {4, 8}) {
    ProductCase product = {.n = 64, .k = 64, .b = mn_major(Swizzle::b128)};
    product.b.first_row = token;
    products.push_back(product);
  }
  for (const int n : {16, 32}) {
    ProductCase product = {.n = n, .k = 64, .b = mn_major(Swizzle::b128)};
    product.b.first_column = n;
    products.push_back(product);
  }
  check_products(products);
}

}  // namespace
}  // namespace attnjit::sm90
