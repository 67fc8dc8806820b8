// fp8 queries, keys and values of kernels/prefill_sm80.cu on their way to shared memory as 16 bits:
// a tile is copied as it lies to where it is staged, and once it has arrived, each thread converts
// what it copied itself. Every fp8 value is a value of the 16-bit types; one that has a scale of
// its block of columns is rounded once.
#pragma once

#include "device/async_copy.cuh"
#include "device/fp8_decode.cuh"
#include "device/prefill_mask.cuh"
#include "device/prefill_scales.cuh"

constexpr int fp8_chunk = 8;  // columns that a thread converts at once

// Eight codes to eight 16-bit values, `scale` times what they stand for.
template <DataType type, bool is_scaled>
__device__ __forceinline__ uint4 convert_chunk(uint2 codes, float scale) {
  uint2 low;
  uint2 high;
  if constexpr (is_scaled) {
    low = scale_fp8_quad<type, config::dtype>(codes.x, scale);
    high = scale_fp8_quad<type, config::dtype>(codes.y, scale);
  } else {
    low = decode_fp8_quad<type, config::dtype>(codes.x);
    high = decode_fp8_quad<type, config::dtype>(codes.y);
  }
  return make_uint4(low.x, low.y, high.x, high.y);
}

// Which chunks of a tile of keys of `columns` columns a thread copies, and converts: the same
// columns of every rows_at_once-th row.
template <int columns>
struct TileShare {
  static constexpr int chunks = columns / 8;
  static constexpr int rows_at_once = num_threads / chunks;
  static constexpr int passes = (config::block_n + rows_at_once - 1) / rows_at_once;
  static_assert(rows_at_once > 0, "a row at once at least");

  static __device__ __forceinline__ int first_row() {
    return static_cast<int>(threadIdx.x) / chunks;
  }
  static __device__ __forceinline__ int column() {
    return static_cast<int>(threadIdx.x) % chunks * 8;
  }
  static __device__ __forceinline__ bool is_idle() {
    return num_threads % chunks != 0 && first_row() >= rows_at_once;
  }
};

// The keys of tile `tile` that this thread copied, once they have arrived, to rows of `pitch`
// elements. Each `scale_columns` of them, unless that is 0, have a scale in `scales`, 1 if
// `has_scales` is false.
template <DataType type, int columns, int pitch, int scale_columns, typename ScaleRows>
__device__ __forceinline__ void convert_tile(Element* destination, const unsigned char* staged,
                                             const ScaleRows& scales, bool has_scales,
                                             const VisibleTiles& tiles, int tile) {
  using Share = TileShare<columns>;
  const int first_row = Share::first_row();
  const int column = Share::column();
  if (Share::is_idle())
    return;
#pragma unroll 4
  for (int pass = 0; pass < Share::passes; ++pass) {
    const int row = first_row + pass * Share::rows_at_once;
    if (config::block_n % Share::rows_at_once != 0 && row >= config::block_n)
      break;
    float scale = 1.0f;
    if constexpr (scale_columns > 0) {
      const int token = tile * config::block_n + row;
      if (has_scales && token >= tiles.first_key && token < tiles.end_key)
        scale = scales.row(token)[column / scale_columns];
    }
    *reinterpret_cast<uint4*>(destination + row * pitch + column) =
        convert_chunk<type, (scale_columns > 0)>(
            *reinterpret_cast<const uint2*>(staged + row * columns + column), scale);
  }
}

// `columns` codes of each query row, to rows of q in shared memory. Rows past the last become
// zeros. Scales as of convert_tile.
template <DataType type, int columns, int scale_columns>
__device__ __forceinline__ void convert_queries(
    Element* destination, const void* q, const attnjit::kernel_interface::QueryStrides& strides,
    const attnjit::kernel_interface::QueryScales& scales, const PrefillWork& work) {
  constexpr int chunks = columns / fp8_chunk;
#pragma unroll 1
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int row = work.first_row + i / chunks;
    const int column = i % chunks * fp8_chunk;
    uint2 codes = {};
    float scale = 1.0f;
    if (row < work.num_rows) {
      codes = *reinterpret_cast<const uint2*>(static_cast<const unsigned char*>(q) +
                                              row_offset(strides, work, row) + column);
      if constexpr (scale_columns > 0) {
        if (scales.scales != nullptr)
          scale = scales.scales[row_offset(scales.strides, work, row) + column / scale_columns];
      }
    }
    *reinterpret_cast<uint4*>(destination + i / chunks * pitch_qk + column) =
        convert_chunk<type, (scale_columns > 0)>(codes, scale);
  }
}
