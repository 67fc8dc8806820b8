// Attention in fp64, straight from the definition: all scores, their maximum, the sum of their
// exponentials, the weighted mean of V. One thread block per tile of query rows that share a kv
// head, so that K and V are read once per tile. Grid: x = request * kv_head * tile.
#include "device/check_elements.cuh"

using namespace attnjit::check;

namespace {

constexpr int num_threads = 256;
constexpr int num_warps = num_threads / 32;
constexpr int tile_tokens = 32;  // weights staged at a time

struct Tile {
  int request;
  int kv_head;
  int first_row;  // of seqlen_q * q_per_kv rows, query-major
  int num_rows;   // in this tile
  int seqlen_kv;
  int first_token;  // before which none of its rows sees any: they may be anything
};

struct SharedStorage {
  double weights[reference_tile_rows][tile_tokens];
};

__device__ double negative_infinity_fp64() {
  return __longlong_as_double(0xfff0000000000000LL);
}

__device__ double warp_reduce(double value, bool is_maximum) {
  for (int step = 16; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, value, step);
    value = is_maximum ? fmax(value, other) : value + other;
  }
  return value;
}

__device__ int query_of(const ReferenceArguments& arguments, int row) {
  return row / arguments.q_per_kv;
}

__device__ int head_of(const ReferenceArguments& arguments, const Tile& tile, int row) {
  return tile.kv_head * arguments.q_per_kv + row % arguments.q_per_kv;
}

// Index in the reference's results, which are [batch, seqlen_q, num_q_heads].
__device__ long long result_index(const ReferenceArguments& arguments, const Tile& tile, int row) {
  const int num_q_heads = arguments.call.num_kv_heads * arguments.q_per_kv;
  return (static_cast<long long>(tile.request) * arguments.call.seqlen_q +
          query_of(arguments, row)) *
             num_q_heads +
         head_of(arguments, tile, row);
}

__device__ long long token_index(const ReferenceArguments& arguments,
                                 const attnjit::kernel_interface::CacheStrides& strides,
                                 const Tile& tile, int token) {
  const long long page =
      arguments.call.block_table[tile.request * arguments.call.block_table_stride +
                                 token / arguments.page_size];
  return tile.request * strides.batch + page * strides.block + tile.kv_head * strides.head +
         token % arguments.page_size * strides.row;
}

// Whether a query sees a token of a sliding window; it stands at `position`.
__device__ bool is_in_window(const ReferenceArguments& arguments, long long position, int token) {
  const bool is_after_left = arguments.window_left < 0 || token >= position - arguments.window_left;
  const bool is_before_right =
      arguments.window_right < 0 || token <= position + arguments.window_right;
  return is_after_left && is_before_right;
}

__device__ double mask_score(const ReferenceArguments& arguments, const Tile& tile, int row,
                             int token, double score) {
  const int query = query_of(arguments, row);
  const int hidden = arguments.call.seqlen_q - 1 - query;
  if (arguments.mask == mask_causal && token >= tile.seqlen_kv - hidden) {
    return negative_infinity_fp64();
  }
  if (arguments.mask == mask_window &&
      !is_in_window(arguments, static_cast<long long>(tile.seqlen_kv) - hidden - 1, token)) {
    return negative_infinity_fp64();
  }
  const attnjit::kernel_interface::MaskStrides& strides = arguments.call.mask_strides;
  const long long index = tile.request * strides.batch +
                          head_of(arguments, tile, row) * strides.head + query * strides.query +
                          token * strides.key;
  const bool is_materialized = arguments.mask == mask_bool || arguments.mask == mask_additive;
  if (is_materialized && token >= arguments.call.mask_keys) {
    return negative_infinity_fp64();
  }
  if (arguments.mask == mask_bool) {
    const bool visible = static_cast<const unsigned char*>(arguments.call.mask)[index] != 0;
    return visible ? score : negative_infinity_fp64();
  }
  if (arguments.mask == mask_additive) {
    return score +
           static_cast<double>(load_element(arguments.call.mask, index, arguments.mask_kind));
  }
  return score;
}

__device__ void load_queries(const ReferenceArguments& arguments, const Tile& tile, double* q) {
  for (int i = threadIdx.x; i < reference_tile_rows * arguments.head_dim_qk; i += num_threads) {
    const int row = i / arguments.head_dim_qk;
    const long long source =
        tile.request * arguments.call.q_strides.batch +
        query_of(arguments, tile.first_row + row) * arguments.call.q_strides.token +
        head_of(arguments, tile, tile.first_row + row) * arguments.call.q_strides.head +
        i % arguments.head_dim_qk;
    q[i] = row < tile.num_rows
               ? static_cast<double>(load_element(arguments.call.q, source, arguments.kind))
               : 0.0;
  }
}

// Scores of all rows and keys into scratch memory; a warp takes a key, lane r ends up with row r.
__device__ void compute_scores(const ReferenceArguments& arguments, const Tile& tile,
                               const double* q, double* scores) {
  const int lane = threadIdx.x % 32;
  for (int token = tile.first_token + threadIdx.x / 32; token < tile.seqlen_kv;
       token += num_warps) {
    const long long k = token_index(arguments, arguments.call.k_strides, tile, token);
    double sums[reference_tile_rows] = {};
    for (int i = lane; i < arguments.head_dim_qk; i += 32) {
      const double key = load_element(arguments.call.k_cache, k + i, arguments.kind);
#pragma unroll
      for (int row = 0; row < reference_tile_rows; ++row) {
        sums[row] += q[row * arguments.head_dim_qk + i] * key;
      }
    }
    double score = 0.0;
#pragma unroll
    for (int row = 0; row < reference_tile_rows; ++row) {
      const double sum = warp_reduce(sums[row], false);
      score = lane == row ? sum : score;
    }
    if (lane < tile.num_rows) {
      score *= static_cast<double>(arguments.call.softmax_scale);
      scores[lane * static_cast<long long>(arguments.max_seqlen) + token] =
          mask_score(arguments, tile, tile.first_row + lane, token, score);
    }
  }
}

// What a row's sink adds to its sum of exponentials.
__device__ double sink_term(const ReferenceArguments& arguments, const Tile& tile, int row,
                            double maximum) {
  return arguments.has_sinks != 0
             ? exp(static_cast<double>(arguments.call.sinks[head_of(arguments, tile, row)]) -
                   maximum)
             : 0.0;
}

// Scores to normalised weights, in place, and the LSE; a warp takes a row.
__device__ void normalize(const ReferenceArguments& arguments, const Tile& tile, double* scores) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < tile.num_rows; row += num_warps) {
    double* weights = scores + row * static_cast<long long>(arguments.max_seqlen);
    double maximum = negative_infinity_fp64();
    for (int token = tile.first_token + lane; token < tile.seqlen_kv; token += 32) {
      maximum = fmax(maximum, weights[token]);
    }
    maximum = warp_reduce(maximum, true);
    double sum = 0.0;
    for (int token = tile.first_token + lane; token < tile.seqlen_kv; token += 32) {
      const bool hidden = weights[token] == negative_infinity_fp64();
      weights[token] = hidden ? 0.0 : exp(weights[token] - maximum);
      sum += weights[token];
    }
    sum = warp_reduce(sum, false);
    const double denominator = sum + sink_term(arguments, tile, tile.first_row + row, maximum);
    for (int token = tile.first_token + lane; token < tile.seqlen_kv && sum > 0.0; token += 32) {
      weights[token] /= denominator;
    }
    if (lane == 0) {
      arguments.lse[result_index(arguments, tile, tile.first_row + row)] =
          sum > 0.0 ? maximum + log(sum) : negative_infinity_fp64();
    }
  }
}

// One column of the output, for all rows of the tile.
__device__ void store_column(const ReferenceArguments& arguments, const Tile& tile, int column,
                             const double* out) {
  for (int row = 0; row < reference_tile_rows; ++row) {
    if (row < tile.num_rows) {
      arguments.out[result_index(arguments, tile, tile.first_row + row) * arguments.head_dim_v +
                    column] = out[row];
    }
  }
}

__device__ void compute_output(const ReferenceArguments& arguments, const Tile& tile,
                               SharedStorage& shared, const double* weights) {
  const attnjit::kernel_interface::CacheStrides& strides =
      arguments.value_is_prefix ? arguments.call.k_strides : arguments.call.v_strides;
  const void* cache = arguments.value_is_prefix ? arguments.call.k_cache : arguments.call.v_cache;
  for (int first_column = 0; first_column < arguments.head_dim_v; first_column += num_threads) {
    const int column = first_column + threadIdx.x;
    double out[reference_tile_rows] = {};
    for (int first = tile.first_token; first < tile.seqlen_kv; first += tile_tokens) {
      __syncthreads();  // the weights staged before are no longer read
      for (int i = threadIdx.x; i < reference_tile_rows * tile_tokens; i += num_threads) {
        const int row = i / tile_tokens;
        const int token = first + i % tile_tokens;
        shared.weights[row][i % tile_tokens] =
            row < tile.num_rows && token < tile.seqlen_kv
                ? weights[row * static_cast<long long>(arguments.max_seqlen) + token]
                : 0.0;
      }
      __syncthreads();  // all weights are staged
      for (int token = first; token < min(first + tile_tokens, tile.seqlen_kv); ++token) {
        if (column >= arguments.head_dim_v)
          break;
        const double value = load_element(
            cache, token_index(arguments, strides, tile, token) + column, arguments.kind);
#pragma unroll
        for (int row = 0; row < reference_tile_rows; ++row) {
          out[row] += shared.weights[row][token - first] * value;
        }
      }
    }
    if (column < arguments.head_dim_v)
      store_column(arguments, tile, column, out);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    reference_decode(const __grid_constant__ ReferenceArguments arguments) {
  extern __shared__ double q[];  // [reference_tile_rows, head_dim_qk]
  __shared__ SharedStorage shared;
  const int all_rows = arguments.call.seqlen_q * arguments.q_per_kv;
  const int tiles = (all_rows + reference_tile_rows - 1) / reference_tile_rows;
  const long long index = arguments.first_tile + blockIdx.x;
  Tile tile;
  tile.request = static_cast<int>(index / tiles / arguments.call.num_kv_heads);
  tile.kv_head = static_cast<int>(index / tiles % arguments.call.num_kv_heads);
  tile.first_row = static_cast<int>(index % tiles) * reference_tile_rows;
  tile.num_rows = min(reference_tile_rows, all_rows - tile.first_row);
  tile.seqlen_kv = arguments.call.seq_lens[tile.request];
  tile.first_token = 0;
  if (arguments.mask == mask_window && arguments.window_left >= 0) {
    const long long position = static_cast<long long>(tile.seqlen_kv) - arguments.call.seqlen_q +
                               query_of(arguments, tile.first_row);
    tile.first_token = static_cast<int>(max(0LL, position - arguments.window_left));
  }
  double* scores = arguments.scores +
                   static_cast<long long>(blockIdx.x) * reference_tile_rows * arguments.max_seqlen;
  load_queries(arguments, tile, q);
  __syncthreads();  // the queries are loaded
  compute_scores(arguments, tile, q, scores);
  __syncthreads();  // all scores are written
  normalize(arguments, tile, scores);
  __syncthreads();  // all weights are written
  compute_output(arguments, tile, shared, scores);
}
