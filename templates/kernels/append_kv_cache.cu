// Writes the K and V of new tokens into a paged cache: as they are, or as fp8, value / scale. Grid:
// x = blocks of vectors, a vector being eight columns of a token's row of K or V; a thread has one.
#include "kernel_config.cuh"

#include "device/cache_place.cuh"
#include "device/fp8_numeric.cuh"
#include "device/numeric_types.cuh"
#include "interface/append_kv_cache_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int columns = 8;  // of a vector: 16 bytes of the new rows
constexpr int k_vectors = config::num_kv_heads * (config::head_dim_qk / columns);  // of a token
constexpr int v_vectors = config::num_kv_heads * (config::head_dim_v / columns);
constexpr int token_vectors = k_vectors + v_vectors;
static_assert(config::head_dim_qk % columns == 0 && config::head_dim_v % columns == 0,
              "whole vectors");

// That a block's vectors may belong to: it begins anywhere in a token's.
constexpr int most_tokens = (config::num_threads + token_vectors - 2) / token_vectors + 1;
static_assert(most_tokens <= config::num_threads, "a thread finds one token's place");

// Where a token's vector lies in K or V.
struct RowPart {
  int head;
  int column;
};

__device__ __forceinline__ bool is_of_k(int vector) {
  return v_vectors == 0 || vector < k_vectors;
}

__device__ __forceinline__ RowPart row_part(int vector) {
  constexpr int k_row = config::head_dim_qk / columns;
  constexpr int v_row = config::head_dim_v > 0 ? config::head_dim_v / columns : 1;
  return is_of_k(vector)
             ? RowPart{vector / k_row, vector % k_row * columns}
             : RowPart{(vector - k_vectors) / v_row, (vector - k_vectors) % v_row * columns};
}

__device__ __forceinline__ uint4 load_vector(const AppendedRows& rows, const NewTokenPlaces& places,
                                             int token, const RowPart& part) {
  const NewTokenStrides& strides = rows.source_strides;
  const long long offset = token / places.tokens_per_batch * strides.batch +
                           token % places.tokens_per_batch * strides.token +
                           part.head * strides.head + part.column;
  return *reinterpret_cast<const uint4*>(static_cast<const Element*>(rows.source) + offset);
}

// Four codes, the first lowest.
template <DataType fp8>
__device__ __forceinline__ unsigned quantize(unsigned low, unsigned high, float scale) {
  const float2 first = unpack_pair<config::dtype>(low);
  const float2 second = unpack_pair<config::dtype>(high);
  return pack_fp8_pair<fp8>(first.x / scale, first.y / scale) |
         pack_fp8_pair<fp8>(second.x / scale, second.y / scale) << 16;
}

template <DataType cache_type>
__device__ __forceinline__ void store_values(void* cache, long long offset, const uint4& values,
                                             float scale) {
  if constexpr (cache_type == config::dtype) {
    *reinterpret_cast<uint4*>(static_cast<Element*>(cache) + offset) = values;
  } else {
    *reinterpret_cast<uint2*>(static_cast<unsigned char*>(cache) + offset) =
        make_uint2(quantize<cache_type>(values.x, values.y, scale),
                   quantize<cache_type>(values.z, values.w, scale));
  }
}

__device__ __forceinline__ void store_vector(const AppendedRows& rows, const CachePlace& place,
                                             const RowPart& part, const uint4& values) {
  const CacheStrides& strides = rows.cache_strides;
  const long long offset = place.request * strides.batch + place.page * strides.block +
                           part.head * strides.head + place.row * strides.row + part.column;
  float scale = 1.0f;
  if (config::dtype_kv != config::dtype && rows.scale != nullptr)
    scale =
        rows.scale[place.request * rows.scale_strides.batch + part.head * rows.scale_strides.head];
  store_values<config::dtype_kv>(rows.cache, offset, values, scale);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_threads)
    append_kv_cache(const __grid_constant__ AppendKvCacheArguments arguments) {
  __shared__ CachePlace token_places[most_tokens];
  const NewTokenPlaces& places = arguments.places;
  const long long first_vector = static_cast<long long>(blockIdx.x) * config::num_threads;
  const int first_token = static_cast<int>(first_vector / token_vectors);
  const int block_tokens = min(places.num_tokens - first_token, most_tokens);
  const int thread = static_cast<int>(threadIdx.x);
  const int vector_of_block = static_cast<int>(first_vector % token_vectors) + thread;
  const int token_of_block = vector_of_block / token_vectors;
  const int vector = vector_of_block % token_vectors;
  const bool has_vector = token_of_block < block_tokens;
  const AppendedRows& rows = is_of_k(vector) ? arguments.k : arguments.v;
  const RowPart part = row_part(vector);
  uint4 values = {};
  if (has_vector)  // on its way while the places are looked up
    values = load_vector(rows, places, first_token + token_of_block, part);
  if (thread < block_tokens)
    token_places[thread] = find_cache_place<config::page_size>(places, first_token + thread);
  __syncthreads();  // the places are written
  if (has_vector && token_places[token_of_block].page >= 0)
    store_vector(rows, token_places[token_of_block], part, values);
}
