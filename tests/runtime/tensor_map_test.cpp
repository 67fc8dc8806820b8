#include "tensor_map.hpp"

#include "catch.hpp"
#include "driver.hpp"
#include "mock_driver.hpp"
#include "sample_kernels.hpp"

#include <functional>
#include <string>
#include <vector>

using namespace attnjit;
using namespace attnjit::test;

namespace {

const void* address(std::uintptr_t value) {
  return reinterpret_cast<const void*>(value);
}

const void* const base = address(0x7000);

// Pages of 64 tokens of 576 columns in boxes of 64 columns: columns, tokens, column blocks, pages.
TensorMapShape page_shape() {
  TensorMapShape shape;
  shape.dtype = DataType::bf16;
  shape.rank = 4;
  shape.extents = {64, 64, 9, 1000};
  shape.strides_bytes = {1152, 128, 73728};
  shape.box = {64, 64, 9, 1};
  shape.swizzle = Swizzle::b128;
  return shape;
}

struct BrokenRule {
  std::function<void(TensorMapShape&)> change;
  std::string field;
  std::string rule;
};

std::vector<BrokenRule> broken_rules() {
  const std::string extent = "must be from 1 to 2^32 elements";
  const std::string stride = "must be a multiple of 16 below 2^40";
  const std::string box = "must be from 1 to 256 elements";
  return {
      {[](auto& shape) { shape.rank = 0; }, "k.rank", "must be from 1 to 5"},
      {[](auto& shape) { shape.rank = 6; }, "k.rank", "must be from 1 to 5"},
      {[](auto& shape) { shape.extents[0] = 0; }, "k.extents[0]", extent},
      {[](auto& shape) { shape.extents[3] = -1; }, "k.extents[3]", extent},
      {[](auto& shape) { shape.extents[3] = 4294967297; }, "k.extents[3]", extent},
      {[](auto& shape) { shape.strides_bytes[0] = 1160; }, "k.strides_bytes[0]", stride},
      {[](auto& shape) { shape.strides_bytes[1] = -128; }, "k.strides_bytes[1]", stride},
      {[](auto& shape) { shape.strides_bytes[2] = 1099511627776; }, "k.strides_bytes[2]", stride},
      {[](auto& shape) { shape.box[1] = 0; }, "k.box[1]", box},
      {[](auto& shape) { shape.box[1] = 257; }, "k.box[1]", box},
      {[](auto& shape) { shape.box[0] = 60; }, "k.box[0]",
       "must span a multiple of 16 bytes, not "
       "120"},
      {[](auto& shape) { shape.box[0] = 72; }, "k.box[0]",
       "must span at most the 128 bytes of its "
       "swizzle, not 144"},
      {[](auto& shape) { shape.swizzle = Swizzle::b64; }, "k.box[0]",
       "must span at most the 64 "
       "bytes of its swizzle, not "
       "128"},
      {[](auto& shape) { shape.swizzle = Swizzle::b32; }, "k.box[0]",
       "must span at most the 32 "
       "bytes of its swizzle, not "
       "128"},
      {[](auto& shape) { shape.dtype = DataType::fp32; }, "k.box[0]",
       "must span at most the 128 "
       "bytes of its swizzle, not "
       "256"},
  };
}

}  // namespace

TEST_CASE("a shape that keeps every rule has no violations") {
  TensorMapShape shape = page_shape();
  CHECK(find_violations("k", shape, base).empty());
  shape.extents[3] = 4294967296;
  shape.strides_bytes[2] = 1099511627776 - 16;
  shape.box = {64, 256, 1, 1};
  CHECK(find_violations("k", shape, base).empty());
  shape.swizzle = Swizzle::none;
  shape.box[0] = 256;
  CHECK(find_violations("k", shape, base).empty());
  shape.dtype = DataType::fp8_e4m3;
  shape.swizzle = Swizzle::b128;
  shape.box[0] = 128;
  CHECK(find_violations("k", shape, base).empty());
}

TEST_CASE("each rule of a tensor map, broken alone, is named with its field") {
  for (const BrokenRule& broken : broken_rules()) {
    TensorMapShape shape = page_shape();
    broken.change(shape);
    const std::vector<Violation> violations = find_violations("k", shape, base);
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].field == broken.field);
    CHECK(violations[0].rule == broken.rule);
    CHECK(!violations[0].fix.empty());
  }
}

TEST_CASE("a tensor map's base is 16-byte aligned memory") {
  for (const std::uintptr_t bad : {std::uintptr_t{0}, std::uintptr_t{0x7008}}) {
    const std::vector<Violation> violations = find_violations("k", page_shape(), address(bad));
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].field == "k.base");
  }
}

TEST_CASE("dimensions beyond the rank obey no rule") {
  TensorMapShape shape = page_shape();
  shape.rank = 2;
  shape.extents[2] = 0;
  shape.strides_bytes[1] = 7;
  shape.box[2] = 0;
  CHECK(find_violations("k", shape, base).empty());
}

TEST_CASE("a shape with broken rules reaches no driver, and all of them are listed") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  TensorMapShape shape = page_shape();
  shape.box[0] = 60;
  shape.extents[1] = 0;
  const std::string message = message_of<ArgumentError>(
      [&] { static_cast<void>(encode_tensor_map(driver, "k_cache", shape, base)); });
  CHECK(contains(message, "k_cache.box[0] = 60: must span a multiple of 16 bytes"));
  CHECK(contains(message, "k_cache.extents[1] = 0: must be from 1 to 2^32 elements"));
  CHECK(mock.tensor_maps.empty());
}

TEST_CASE("a tensor map is encoded as its shape says, without interleaving and L2 promotion") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  const TensorMap map = encode_tensor_map(driver, "k", page_shape(), base);
  REQUIRE(mock.tensor_maps.size() == 1);
  const EncodedTensorMap& encoded = mock.tensor_maps[0];
  CHECK(encoded.type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(encoded.base == base);
  CHECK(encoded.extents == std::vector<cuuint64_t>{64, 64, 9, 1000});
  CHECK(encoded.strides == std::vector<cuuint64_t>{1152, 128, 73728});
  CHECK(encoded.box == std::vector<cuuint32_t>{64, 64, 9, 1});
  CHECK(encoded.steps == std::vector<cuuint32_t>{1, 1, 1, 1});
  CHECK(encoded.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
  CHECK(encoded.swizzle == CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK(encoded.promotion == CU_TENSOR_MAP_L2_PROMOTION_NONE);
  CHECK(encoded.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(map.opaque[0] == 0);
  CHECK(map.opaque[15] == 1);
}

TEST_CASE("every element type and swizzle has its code in a tensor map") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  TensorMapShape shape = page_shape();
  shape.box[0] = 16;
  for (const DataType dtype : {DataType::fp16, DataType::fp8_e4m3, DataType::uint8}) {
    shape.dtype = dtype;
    encode_tensor_map(driver, "k", shape, base);
  }
  shape.box[0] = 4;
  for (const Swizzle swizzle : {Swizzle::none, Swizzle::b32, Swizzle::b64}) {
    shape.dtype = swizzle == Swizzle::none ? DataType::int32 : DataType::fp32;
    shape.swizzle = swizzle;
    encode_tensor_map(driver, "k", shape, base);
  }
  REQUIRE(mock.tensor_maps.size() == 6);
  CHECK(mock.tensor_maps[0].type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  CHECK(mock.tensor_maps[1].type == CU_TENSOR_MAP_DATA_TYPE_UINT8);
  CHECK(mock.tensor_maps[2].type == CU_TENSOR_MAP_DATA_TYPE_UINT8);
  CHECK(mock.tensor_maps[3].type == CU_TENSOR_MAP_DATA_TYPE_INT32);
  CHECK(mock.tensor_maps[4].type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  CHECK(mock.tensor_maps[3].swizzle == CU_TENSOR_MAP_SWIZZLE_NONE);
  CHECK(mock.tensor_maps[4].swizzle == CU_TENSOR_MAP_SWIZZLE_32B);
  CHECK(mock.tensor_maps[5].swizzle == CU_TENSOR_MAP_SWIZZLE_64B);
}

TEST_CASE("a driver that refuses a tensor map is reported with the tensor's name") {
  MockDriver& mock = fresh_mock_driver();
  mock.encode_result = CUDA_ERROR_INVALID_VALUE;
  const Driver driver(mock_driver_path);
  const std::string message = message_of<CudaError>(
      [&] { static_cast<void>(encode_tensor_map(driver, "k_cache", page_shape(), base)); });
  CHECK(
      contains(message, "cuTensorMapEncodeTiled of k_cache failed with CUDA_ERROR_INVALID_VALUE"));
}
