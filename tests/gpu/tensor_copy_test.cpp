// What copies into shared memory and stores from fragments write, byte by byte: boxes of every rank
// and swizzle, zeros outside the tensor, plain rows, stmatrix.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"
#include "unit_kernel.hpp"

namespace attnjit::sm90 {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Coordinates = std::array<int, max_tensor_map_rank>;

constexpr int image_bytes = 96 * 1024;

struct CopyCase {
  TensorMapShape shape;
  Coordinates first;  // of the box
  unsigned offset;    // in shared memory, a multiple of 128
};

// Contiguous.
TensorMapShape make_shape(DataType dtype, std::vector<int> extents, std::vector<int> box,
                          Swizzle swizzle) {
  TensorMapShape shape;
  shape.dtype = dtype;
  shape.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), shape.extents.begin());
  std::copy(box.begin(), box.end(), shape.box.begin());
  std::int64_t stride = size_bytes(dtype);
  for (std::size_t i = 0; i + 1 < extents.size(); ++i) {
    stride *= extents[i];
    shape.strides_bytes.at(i) = stride;
  }
  shape.swizzle = swizzle;
  return shape;
}

std::size_t rank_of(const TensorMapShape& shape) {
  return static_cast<std::size_t>(shape.rank);
}

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

std::size_t tensor_bytes(const TensorMapShape& shape) {
  std::int64_t last = shape.extents[0] * size_bytes(shape.dtype);
  for (std::size_t i = 1; i < rank_of(shape); ++i) {
    last += (shape.extents.at(i) - 1) * shape.strides_bytes.at(i - 1);
  }
  return static_cast<std::size_t>(last);
}

unsigned box_bytes(const TensorMapShape& shape) {
  int bytes = size_bytes(shape.dtype);
  for (std::size_t i = 0; i < rank_of(shape); ++i) {
    bytes *= shape.box.at(i);
  }
  return static_cast<unsigned>(bytes);
}

// Where the hardware puts the byte that would lie at `address` without a swizzle.
unsigned swizzled(unsigned address, Swizzle swizzle) {
  const unsigned mask = (1U << static_cast<unsigned>(swizzle)) - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

// One element of the box, by its number in the box: its offset in the tensor, or -1 outside.
std::int64_t offset_in_tensor(const CopyCase& copy, std::int64_t element) {
  std::int64_t offset = 0;
  bool is_inside = true;
  for (std::size_t i = 0; i < rank_of(copy.shape); ++i) {
    const std::int64_t x = copy.first.at(i) + element % copy.shape.box.at(i);
    element /= copy.shape.box.at(i);
    is_inside = is_inside && x >= 0 && x < copy.shape.extents.at(i);
    offset += x * (i == 0 ? size_bytes(copy.shape.dtype) : copy.shape.strides_bytes.at(i - 1));
  }
  return is_inside ? offset : -1;
}

Bytes expected_image(const CopyCase& copy, const Bytes& tensor, const Bytes& rows) {
  Bytes image(image_bytes, 0xff);
  const auto width = static_cast<unsigned>(size_bytes(copy.shape.dtype));
  const unsigned count = box_bytes(copy.shape);
  for (unsigned i = 0; i < count; ++i) {
    const std::int64_t offset = offset_in_tensor(copy, i / width);
    image.at(swizzled(copy.offset + i, copy.shape.swizzle)) =
        offset < 0 ? std::uint8_t{0} : tensor.at(static_cast<std::size_t>(offset) + i % width);
  }
  std::copy(rows.begin(), rows.end(), image.begin() + copy.offset + count);
  return image;
}

Bytes copied_image(const UnitKernel& kernel, const CopyCase& copy, const Bytes& tensor,
                   const Bytes& rows, unsigned row_bytes, const DeviceStream& stream) {
  const DeviceBuffer tensor_memory = upload(tensor, stream);
  const DeviceBuffer row_memory = upload(rows, stream);
  const DeviceBuffer image = upload(Bytes(image_bytes), stream);
  CopyArguments arguments{};
  arguments.map = encode(copy.shape, tensor_memory);
  arguments.rank = copy.shape.rank;
  std::copy(copy.first.begin(), copy.first.end(), arguments.coordinates);
  arguments.box_offset = copy.offset;
  arguments.box_bytes = box_bytes(copy.shape);
  arguments.rows = static_cast<const unsigned char*>(row_memory.data());
  arguments.row_bytes = row_bytes;
  arguments.num_rows = static_cast<int>(rows.size() / row_bytes);
  arguments.image = static_cast<unsigned char*>(image.data());
  arguments.shared_bytes = image_bytes;
  kernel.launch(1, &arguments, stream);
  return download_values<std::uint8_t>(image, image_bytes, stream.handle());
}

void check_copies(const std::vector<CopyCase>& copies) {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  const UnitKernel kernel("copy_box", 128, image_bytes);
  constexpr unsigned row_bytes = 656;
  const Bytes rows = random_bytes(row_bytes * std::size_t{3});
  for (const CopyCase& copy : copies) {
    INFO(fmt::format("rank {}, swizzle {}, at {} {} {} {} {}, offset {}", copy.shape.rank,
                     static_cast<int>(copy.shape.swizzle), copy.first[0], copy.first[1],
                     copy.first[2], copy.first[3], copy.first[4], copy.offset));
    const Bytes tensor = random_bytes(tensor_bytes(copy.shape));
    const Bytes expected = expected_image(copy, tensor, rows);
    const Bytes image = copied_image(kernel, copy, tensor, rows, row_bytes, stream);
    const auto difference = std::mismatch(image.begin(), image.end(), expected.begin());
    CHECK(difference.first - image.begin() == image_bytes);
  }
}

TEST_CASE("a box is written under its swizzle, wherever it starts in shared memory") {
  std::vector<CopyCase> copies;
  for (const unsigned offset : {0U, 128U, 384U, 512U, 1024U}) {
    const auto add = [&](Swizzle swizzle, int box_columns) {
      copies.push_back(
          {make_shape(DataType::bf16, {192, 100}, {box_columns, 40}, swizzle), {64, 30}, offset});
    };
    add(Swizzle::b128, 64);
    add(Swizzle::b64, 32);
    add(Swizzle::b32, 16);
    add(Swizzle::none, 8);
    add(Swizzle::none, 64);
  }
  check_copies(copies);
}

TEST_CASE("boxes of 2 to 5 dimensions and of every element width are copied") {
  TensorMapShape page = make_shape(DataType::bf16, {64, 64, 9, 4}, {64, 64, 9, 1}, Swizzle::b128);
  page.strides_bytes = {1152, 128, 73728};  // the third dimension is blocks of 64 columns
  check_copies({
      {make_shape(DataType::fp8_e4m3, {256, 20}, {128, 12}, Swizzle::b128), {128, 5}, 0},
      {make_shape(DataType::fp32, {64, 20}, {32, 12}, Swizzle::b128), {32, 5}, 0},
      {make_shape(DataType::fp16, {64, 9, 5}, {64, 8, 3}, Swizzle::b128), {0, 1, 2}, 256},
      {page, {0, 0, 0, 3}, 1024},
      {make_shape(DataType::bf16, {32, 5, 4, 3, 3}, {32, 3, 2, 2, 2}, Swizzle::b64),
       {0, 1, 2, 1, 1},
       128},
  });
}

TEST_CASE("what a box covers outside its tensor becomes zeros, and the copy completes") {
  std::vector<CopyCase> copies;
  const TensorMapShape matrix = make_shape(DataType::bf16, {192, 100}, {64, 16}, Swizzle::b128);
  for (const Coordinates& first : {Coordinates{64, -3},
                                   {64, 95},
                                   {-32, 10},
                                   {160, 10},
                                   {192, 0},
                                   {0, 100},
                                   {0, -16},
                                   {-64, -16},
                                   {0, 1 << 30}}) {
    copies.push_back({matrix, first, 0});
  }
  const TensorMapShape pages =
      make_shape(DataType::bf16, {64, 16, 2, 3}, {64, 16, 2, 1}, Swizzle::b128);
  for (const int page : {-1, 2, 3, 1000}) {
    copies.push_back({pages, {0, 0, 0, page}, 0});
  }
  check_copies(copies);
}

// Element of `form` at `row`, `column` of the image: matrix, row and column of the fragments.
int expected_element(int form, int row, int column) {
  const bool is_transposed = form % 2 == 1;
  const int matrices = form < 2 ? 4 : 2;
  if (row / 8 >= matrices) {
    return 0xffff;
  }
  return 256 * (row / 8) + (is_transposed ? column * 8 + row % 8 : row % 8 * 8 + column);
}

TEST_CASE("stmatrix stores four or two matrices, as they are and transposed") {
  if (!has_sm90()) {
    return;
  }
  const DeviceStream stream(0);
  const UnitKernel kernel("store_matrices", 32, 0);
  const std::size_t count = 4 * 32 * 8;
  const DeviceBuffer image = upload(std::vector<std::uint16_t>(count), stream);
  StoreArguments arguments{};
  arguments.image = static_cast<unsigned short*>(image.data());
  kernel.launch(1, &arguments, stream);
  const auto stored = download_values<std::uint16_t>(image, count, stream.handle());
  int wrong = 0;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int expected = expected_element(i / 256, i % 256 / 8, i % 8);
    wrong += stored[static_cast<std::size_t>(i)] == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace attnjit::sm90
