// Tiles of kernels/sparse_mla_sm80.cu: tokens are looked up in the lists of indices, copied row by
// row, and, if they are encoded, decoded. What no index names is not read.
#pragma once

#include "device/async_copy.cuh"
#include "device/sparse_mla_block.cuh"

// The index that this thread looks up for `tile`; -1 past the lists' ends.
__device__ __forceinline__ int read_index(
    const attnjit::kernel_interface::SparseMlaArguments& arguments, const SparseMlaWork& work,
    int tile) {
  const int entry = tile * config::block_n + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= config::block_n || entry >= work.num_entries())
    return -1;
  const bool is_extra = entry >= work.entries[0];
  const attnjit::kernel_interface::TokenIndices& list = arguments.indices[is_extra ? 1 : 0];
  return list.indices[work.request * list.request_stride + work.query * list.query_stride + entry -
                      (is_extra ? work.entries[0] : 0)];
}

// Finds the tokens of `tile`, whose indices the threads have read.
template <KvEncoding encoding = config::kv_encoding>
__device__ __forceinline__ void find_tokens(
    SharedStorage& shared, const attnjit::kernel_interface::SparseMlaArguments& arguments,
    const SparseMlaWork& work, int tile, int index) {
  using namespace attnjit::kernel_interface;
  if (threadIdx.x >= config::block_n)
    return;
  const int entry = tile * config::block_n + static_cast<int>(threadIdx.x);
  const TokenPool& pool = arguments.pools[entry >= work.entries[0] ? 1 : 0];
  const long long offset = token_offset(pool, index);
  const bool is_valid = offset >= 0;
  const auto* data = static_cast<const unsigned char*>(pool.data);
  TokenPlace place = {nullptr, nullptr};
  if (is_valid) {
    place.row = data + offset;
    if constexpr (encoding != KvEncoding::plain) {
      using Token = EncodedToken<encoding>;
      if constexpr (Token::has_scales_apart)
        place.scales = data + scales_offset(pool, index, Token::row_bytes, Token::scale_bytes);
    }
  }
  shared.places[tile % 2][threadIdx.x] = place;
  const unsigned valid = __ballot_sync(0xffffffffu, is_valid);
  if (threadIdx.x % 32 == 0)
    shared.valid[tile % 4][threadIdx.x / 32] = valid;
}

// Starts copying `row_bytes` of each token of `tile`, `step` at a time, to rows of `pitch` bytes;
// rows of no token become zeros.
template <int step, int row_bytes, int pitch>
__device__ __forceinline__ void copy_rows(unsigned char* destination, const SharedStorage& shared,
                                          int tile) {
  constexpr int chunks = row_bytes / step;
#pragma unroll 2
  for (int i = threadIdx.x; i < config::block_n * chunks; i += num_threads) {
    const int row = i / chunks;
    const int byte = i % chunks * step;
    const unsigned char* source = shared.places[tile % 2][row].row;
    const bool is_valid = source != nullptr;
    if constexpr (step == 16)
      copy_async_16(destination + row * pitch + byte, source + byte, is_valid);
    else
      copy_async_8(destination + row * pitch + byte, source + byte, is_valid);
  }
}

// Starts copying `tile`: plain tokens to where they are used, encoded ones to be decoded.
template <KvEncoding encoding = config::kv_encoding>
__device__ __forceinline__ void copy_tokens(
    SharedStorage& shared, const attnjit::kernel_interface::SparseMlaArguments& arguments,
    int tile) {
  if constexpr (encoding != KvEncoding::plain) {
    using Token = EncodedToken<encoding>;
    if constexpr (!Token::has_scales_apart) {
      copy_rows<16, Token::row_bytes, Token::pitch>(shared.encoded(), shared, tile);
    } else {
      if (arguments.is_aligned_16)
        copy_rows<16, Token::row_bytes, Token::pitch>(shared.encoded(), shared, tile);
      else
        copy_rows<8, Token::row_bytes, Token::pitch>(shared.encoded(), shared, tile);
      if (threadIdx.x < config::block_n) {
        const unsigned char* scales = shared.places[tile % 2][threadIdx.x].scales;
        copy_async_8(shared.encoded() + threadIdx.x * Token::pitch + Token::first_scale_byte,
                     scales, scales != nullptr);
      }
    }
  } else {
    Element* destination = shared.elements() + first_key_element + tile % 2 * key_elements;
    copy_rows<16, config::head_dim_qk * 2, pitch_qk * 2>(
        reinterpret_cast<unsigned char*>(destination), shared, tile);
  }
}

// Decodes the tile that has been copied, 16 columns at a time, to where it is used. A row of no
// token, all zeros, becomes zeros again.
template <KvEncoding encoding = config::kv_encoding>
__device__ __forceinline__ void decode_tokens(SharedStorage& shared) {
  using Token = EncodedToken<encoding>;
  constexpr int fp8_steps = Token::fp8_columns / 16;
  constexpr int rope_steps = Token::rope_columns / 8;
  constexpr int steps = fp8_steps + rope_steps;
#pragma unroll 1
  for (int i = threadIdx.x; i < config::block_n * steps; i += num_threads) {
    const int row = i / steps;
    const int step = i % steps;
    const unsigned char* token = shared.encoded() + row * Token::pitch;
    Element* key = shared.elements() + first_key_element + row * pitch_qk;
    if (step < fp8_steps) {
      const int column = step * 16;
      const uint4 codes = *reinterpret_cast<const uint4*>(token + column);
      const float scale = scale_of_column<encoding>(token, column);
      const uint2 first = scale_fp8_quad<DataType::fp8_e4m3, DataType::bf16>(codes.x, scale);
      const uint2 second = scale_fp8_quad<DataType::fp8_e4m3, DataType::bf16>(codes.y, scale);
      const uint2 third = scale_fp8_quad<DataType::fp8_e4m3, DataType::bf16>(codes.z, scale);
      const uint2 fourth = scale_fp8_quad<DataType::fp8_e4m3, DataType::bf16>(codes.w, scale);
      auto* values = reinterpret_cast<uint4*>(key + column);
      values[0] = make_uint4(first.x, first.y, second.x, second.y);
      values[1] = make_uint4(third.x, third.y, fourth.x, fourth.y);
    } else {
      const int column = (step - fp8_steps) * 8;
      *reinterpret_cast<uint4*>(key + Token::fp8_columns + column) =
          *reinterpret_cast<const uint4*>(token + Token::first_rope_byte + column * 2);
    }
  }
}

// Rows past the last head become zeros.
__device__ __forceinline__ void copy_queries(
    SharedStorage& shared, const attnjit::kernel_interface::SparseMlaArguments& arguments,
    const SparseMlaWork& work) {
  constexpr int chunks = config::head_dim_qk / 8;
#pragma unroll 2
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int head = work.first_head + i / chunks;
    const bool is_head = head < arguments.num_q_heads;
    const int column = i % chunks * 8;
    const Element* source = static_cast<const Element*>(arguments.q);
    if (is_head)
      source += row_offset(arguments.q_strides, work, head) + column;
    copy_async_16(shared.elements() + i / chunks * pitch_qk + column, source, is_head);
  }
}

// The columns of q and keys past head_dim_qk are multiplied too: zero once, no copy touches them.
template <int padding>
__device__ __forceinline__ void clear_padding(SharedStorage& shared) {
  if constexpr (padding > 0) {
    constexpr int rows = config::block_m + config::block_n * key_tile_count;
    for (int i = threadIdx.x; i < rows * padding; i += num_threads)
      shared.elements()[i / padding * pitch_qk + config::head_dim_qk + i % padding] = 0;
  }
}
