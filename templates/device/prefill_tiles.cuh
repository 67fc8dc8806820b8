// Copies of kernels/prefill_sm80.cu from global to shared memory: query rows, and tiles of keys and
// values, contiguous or paged.
#pragma once

#include "device/async_copy.cuh"
#include "device/opaque_value.cuh"
#include "device/prefill_block.cuh"
#include "device/prefill_fp8.cuh"
#include "device/prefill_mask.cuh"
#include "device/prefill_scales.cuh"

// Columns of a key, besides the rope's, and what of a tile is staged at a time: its keys or values.
constexpr int key_columns = config::head_dim_qk - config::head_dim_rope;
constexpr bool keys_are_staged = is_fp8<config::dtype_kv>;
constexpr bool rope_is_staged = config::head_dim_rope > 0 && is_fp8<config::dtype_rope>;
constexpr int first_rope_byte = keys_are_staged ? config::block_n * key_columns : 0;
constexpr int staged_key_bytes =
    first_rope_byte + (rope_is_staged ? config::block_n * config::head_dim_rope : 0);
constexpr int staged_value_bytes =
    keys_are_staged && !value_is_prefix ? config::block_n * config::head_dim_v : 0;

// Columns of the rope that share a scale.
constexpr int rope_scale_columns = config::scales_rope == ScaleGrain::none ? 0
                                   : config::scales_rope == ScaleGrain::per_block
                                       ? config::scale_block
                                       : config::head_dim_rope;

template <int bytes>
struct StagedTile {
  alignas(16) unsigned char staged[bytes];
};
template <>
struct StagedTile<0> {
  static constexpr unsigned char* staged = nullptr;
};

// Queries, then keys, then values; at the end the output takes their place. What follows from the
// thread block's place lies here too: registers are full of scores and outputs.
struct SharedStorage
    : SharedScales,
      StagedTile<(staged_key_bytes > staged_value_bytes ? staged_key_bytes : staged_value_bytes)> {
  alignas(16) Element elements[tile_elements > out_elements ? tile_elements : out_elements];
  PrefillWork work;
  VisibleTiles tiles;
};
static_assert(sizeof(SharedStorage) == config::shared_memory_bytes,
              "the host's shared-memory plan differs from SharedStorage");

// Where keys or values of a request and kv head lie: in pages, or, if page_size is 0, in rows one
// after the other.
template <typename Stored, int page_size>
struct KeyRows {
  const Stored* base;
  attnjit::kernel_interface::CacheStrides strides;
  const int* pages;  // of this request; unused unless paged
  int shift;         // place of the work's first key among these rows: 0 but of rope columns

  // `token` counts from the work's first key. Of a cache it must be one that the request has: only
  // their pages are known.
  __device__ __forceinline__ const Stored* row(int token) const {
    const int place = token + shift;
    if constexpr (page_size > 0) {
      return base + pages[place / page_size] * strides.block + place % page_size * strides.row;
    } else {
      return base + place * strides.row;
    }
  }
};

// Of k, v or their scales.
template <typename Stored>
__device__ __forceinline__ KeyRows<Stored, config::page_size> key_rows(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
    const void* tensor, const attnjit::kernel_interface::CacheStrides& strides) {
  const Stored* base = static_cast<const Stored*>(tensor) + work.request * strides.batch +
                       work.kv_head * strides.head + work.first_key * strides.row;
  return {base, strides, arguments.block_table + work.request * arguments.block_table_stride, 0};
}

// Of the rope columns of k, which all heads share, or their scales: rows of the whole request, from
// its position 0.
template <typename Stored>
__device__ __forceinline__ KeyRows<Stored, config::rope_page_size> rope_rows(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work,
    const void* tensor, const attnjit::kernel_interface::CacheStrides& strides) {
  const Stored* base = static_cast<const Stored*>(tensor) + work.request * strides.batch;
  return {base, strides, arguments.block_table + work.request * arguments.block_table_stride,
          work.key_position};
}

// Whether the keys of a tile lie at equal distances: in rows one after the other, or in one page.
// Some key of a tile that is copied is visible, so its page is known.
constexpr bool keys_follow = config::page_size == 0 || config::page_size % config::block_n == 0;

// Beside wide keys there is no register for an address of values that steps, but where the keys'
// last columns, whose addresses do not, are apart.
constexpr bool values_step =
    keys_follow && (config::head_dim_qk <= 128 || config::head_dim_rope > 0);

__device__ __forceinline__ void copy_chunk(Element* destination, const Element* source,
                                           bool is_visible) {
  copy_async_16(destination, source, is_visible);
}
__device__ __forceinline__ void copy_chunk(unsigned char* destination, const unsigned char* source,
                                           bool is_visible) {
  copy_async_8(destination, source, is_visible);
}

// Starts copying `columns` elements of each key of tile `tile`: block_n rows of `pitch`. Keys that
// no row of the thread block may see become zeros without being read: they may be anything. Where
// it `steps`, which keys_follow allows, an address follows from the one before; else it is found
// anew, which takes a product more and a register less.
template <int columns, int pitch, bool steps, typename Stored, int page_size>
__device__ __forceinline__ void copy_tile(Stored* destination,
                                          const KeyRows<Stored, page_size>& rows,
                                          const VisibleTiles& tiles, int tile) {
  using Share = TileShare<columns>;
  constexpr int rows_at_once = Share::rows_at_once;
  constexpr int passes = Share::passes;
  const int first_row = Share::first_row();
  const int column = Share::column();
  if (Share::is_idle() || (rows_at_once > config::block_n && first_row >= config::block_n))
    return;
  // Where a key's columns are copied from two tensors, the places that they are copied to would
  // stay in a register each, one too many for the assembler of NVRTC 12.9.
  const int first_place = config::head_dim_rope > 0 ? opaque(first_row) : first_row;
  const int first_token = tile * config::block_n + first_row;
  const unsigned num_visible = tiles.end_key - tiles.first_key;
  const Stored* source = rows.base + column;
  if constexpr (steps)
    source = rows.row(first_token) + column;
#pragma unroll
  for (int pass = 0; pass < passes; ++pass) {
    const int row = pass * rows_at_once;
    if (config::block_n % rows_at_once != 0 && first_row + row >= config::block_n)
      break;
    const int token = first_token + row;
    const bool is_visible = static_cast<unsigned>(token - tiles.first_key) < num_visible;
    if (!steps && is_visible)
      source = rows.row(token) + column;
    copy_chunk(destination + (first_place + row) * pitch + column, source, is_visible);
    if constexpr (steps)
      source += rows_at_once * rows.strides.row;
  }
}

// Starts copying the scales of the keys of tile `tile`, one each: 0 where no row may see the key.
__device__ __forceinline__ void copy_scales(
    float* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    const attnjit::kernel_interface::KeyScales& of, const SharedStorage& shared, int tile) {
  const auto rows = key_rows<float>(arguments, shared.work, of.scales, of.strides);
  for (int i = threadIdx.x; i < config::block_n; i += num_threads) {
    const int token = tile * config::block_n + i;
    const bool is_visible = token >= shared.tiles.first_key && token < shared.tiles.end_key;
    if (of.scales == nullptr)
      destination[i] = 1.0f;
    else
      copy_async_4(destination + i, is_visible ? rows.row(token) : rows.base, is_visible);
  }
}

// `buffer` as of key_scale, for the scales.
__device__ __forceinline__ void copy_keys(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    SharedStorage& shared, int tile, int buffer) {
  if constexpr (has_key_scales) {
    copy_scales(shared.tokens[buffer], arguments, arguments.k_scales, shared, tile);
    if constexpr (!value_is_prefix)
      copy_scales(shared.tokens[1], arguments, arguments.v_scales, shared, tile);
  }
  if constexpr (keys_are_staged) {
    copy_tile<key_columns, key_columns, keys_follow>(
        shared.staged,
        key_rows<unsigned char>(arguments, shared.work, arguments.k, arguments.k_strides),
        shared.tiles, tile);
  } else {
    copy_tile<key_columns, pitch_qk, keys_follow>(
        destination, key_rows<Element>(arguments, shared.work, arguments.k, arguments.k_strides),
        shared.tiles, tile);
  }
  if constexpr (rope_is_staged) {
    copy_tile<config::head_dim_rope, config::head_dim_rope, false>(
        shared.staged + first_rope_byte,
        rope_rows<unsigned char>(arguments, shared.work, arguments.k_rope, arguments.rope_strides),
        shared.tiles, tile);
  } else if constexpr (config::head_dim_rope > 0) {
    copy_tile<config::head_dim_rope, pitch_qk, false>(
        destination + key_columns,
        rope_rows<Element>(arguments, shared.work, arguments.k_rope, arguments.rope_strides),
        shared.tiles, tile);
  }
}

__device__ __forceinline__ void copy_values(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    SharedStorage& shared, int tile) {
  if constexpr (keys_are_staged) {
    copy_tile<config::head_dim_v, config::head_dim_v, keys_follow>(
        shared.staged,
        key_rows<unsigned char>(arguments, shared.work, arguments.v, arguments.v_strides),
        shared.tiles, tile);
  } else {
    copy_tile<config::head_dim_v, pitch_v, values_step>(
        destination, key_rows<Element>(arguments, shared.work, arguments.v, arguments.v_strides),
        shared.tiles, tile);
  }
}

// Keys of a tile that were staged become 16 bits, once this thread's copies have arrived.
__device__ __forceinline__ void convert_keys(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    SharedStorage& shared, int tile) {
  const auto scale_rows = [&](const attnjit::kernel_interface::KeyScales& of) {
    return key_rows<float>(arguments, shared.work, of.scales, of.strides);
  };
  if constexpr (keys_are_staged) {
    convert_tile<config::dtype_kv, key_columns, pitch_qk,
                 config::scales_kv == ScaleGrain::per_block ? config::scale_block : 0>(
        destination, shared.staged, scale_rows(arguments.k_scales),
        arguments.k_scales.scales != nullptr, shared.tiles, tile);
  }
  if constexpr (rope_is_staged) {
    convert_tile<config::dtype_rope, config::head_dim_rope, pitch_qk, rope_scale_columns>(
        destination + key_columns, shared.staged + first_rope_byte,
        rope_rows<float>(arguments, shared.work, arguments.rope_scales.scales,
                         arguments.rope_scales.strides),
        arguments.rope_scales.scales != nullptr, shared.tiles, tile);
  }
}

__device__ __forceinline__ void convert_values(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    SharedStorage& shared, int tile) {
  if constexpr (keys_are_staged) {
    convert_tile<config::dtype_kv, config::head_dim_v, pitch_v,
                 config::scales_kv == ScaleGrain::per_block ? config::scale_block : 0>(
        destination, shared.staged,
        key_rows<float>(arguments, shared.work, arguments.v_scales.scales,
                        arguments.v_scales.strides),
        arguments.v_scales.scales != nullptr, shared.tiles, tile);
  }
}

// Columns of the query rows from a tensor that has `columns` of them.
template <DataType type, int columns, ScaleGrain grain>
__device__ __forceinline__ void copy_query_columns(
    Element* destination, const void* q, const attnjit::kernel_interface::QueryStrides& strides,
    const attnjit::kernel_interface::QueryScales& scales, const PrefillWork& work) {
  constexpr int chunks = columns / 8;
  if constexpr (is_fp8<type>) {
    convert_queries<type, columns, grain == ScaleGrain::per_block ? config::scale_block : 0>(
        destination, q, strides, scales, work);
  } else {
#pragma unroll 4
    for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
      const int row = work.first_row + i / chunks;
      const bool is_row = row < work.num_rows;
      const int column = i % chunks * 8;
      const Element* source = static_cast<const Element*>(q);
      if (is_row)
        source += row_offset(strides, work, row) + column;
      copy_async_16(destination + i / chunks * pitch_qk + column, source, is_row);
    }
  }
}

__device__ __forceinline__ void copy_queries(
    SharedStorage& shared, const attnjit::kernel_interface::PrefillArguments& arguments,
    const PrefillWork& work) {
  constexpr int columns = config::q_rope_apart ? key_columns : config::head_dim_qk;
  copy_query_columns<config::dtype_q, columns, config::scales_q>(
      shared.elements, arguments.q, arguments.q_strides, arguments.q_scales, work);
  if constexpr (config::q_rope_apart) {
    copy_query_columns<config::dtype_rope, config::head_dim_rope, ScaleGrain::none>(
        shared.elements + columns, arguments.q_rope, arguments.q_rope_strides, {}, work);
  }
}

// The columns of q and k past head_dim_qk are multiplied too: zero once, no copy touches them.
template <int padding>
__device__ __forceinline__ void clear_padding(SharedStorage& shared) {
  if constexpr (padding > 0) {
    constexpr int rows = config::block_m + config::block_n * (value_is_prefix ? 2 : 1);
    for (int i = threadIdx.x; i < rows * padding; i += num_threads)
      shared.elements[i / padding * pitch_qk + config::head_dim_qk + i % padding] = 0;
  }
}
