// Attention in fp64, straight from the definition: all scores, their maximum, the sum of their
// exponentials, the weighted mean of V. Keys that no query of a tile sees are not read: they may be
// anything. One thread block per tile of query rows that share a kv head, so that K and V are read
// once per tile. Grid: x = request * kv_head * tile.
#include "device/check_elements.cuh"
#include "reference_visibility.h"

using namespace attnjit::check;

namespace {

constexpr int num_threads = 256;
constexpr int num_warps = num_threads / 32;
constexpr int tile_tokens = 32;  // weights staged at a time

struct Tile {
  int request;
  int kv_head;
  int first_row;  // of num_queries * q_per_kv rows, query-major
  int num_rows;   // in this tile
  int num_queries;
  int num_keys;
};

struct SharedStorage {
  double weights[reference_tile_rows][tile_tokens];
  bool is_weighted[tile_tokens];                     // by any row
  double key_norms[num_warps][reference_tile_rows];  // the largest that a warp saw, by row
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

// Index in the reference's results, which are [rows of q, num_q_heads].
__device__ long long result_index(const ReferenceArguments& arguments, const Tile& tile, int row) {
  const attnjit::kernel_interface::RequestTokens& queries = arguments.queries;
  const long long first = queries.offsets != nullptr
                              ? first_token_row(queries, tile.request)
                              : static_cast<long long>(tile.request) * queries.extent;
  return (first + query_of(arguments, row)) * arguments.num_kv_heads * arguments.q_per_kv +
         head_of(arguments, tile, row);
}

__device__ long long token_index(const ReferenceArguments& arguments,
                                 const attnjit::kernel_interface::CacheStrides& strides,
                                 const Tile& tile, int token) {
  const long long base = tile.request * strides.batch + tile.kv_head * strides.head;
  if (arguments.block_table == nullptr)
    return base + (first_token_row(arguments.keys, tile.request) + token) * strides.row;
  const long long page =
      arguments
          .block_table[tile.request * arguments.block_table_stride + token / arguments.page_size];
  return base + page * strides.block + token % arguments.page_size * strides.row;
}

// By the definition of the suites' expressions.
__device__ double customize_score(const ReferenceArguments& arguments, const QueryPlace& place,
                                  int token, double score) {
  const long long key_position = place.first_key_position + token;
  switch (arguments.custom_score) {
    case custom_score_striped:
      return score - 0.125 * static_cast<double>(key_position % 5) + (place.head == 1 ? 0.5 : 0.0);
    case custom_score_squashed:
      return 3.0 * score / (1.0 + fabs(score)) - 0.0625 * place.request;
    default:  // custom_score_by_side
      return key_position > place.position ? score - 1.5 : 1.25 * score;
  }
}

// What the score modifier and the mask make of a score that its query sees.
__device__ double modify_score(const ReferenceArguments& arguments, const QueryPlace& place,
                               int token, double score) {
  if (arguments.modifier == modifier_softcap) {
    const double cap = arguments.softcap;
    score = cap * tanh(score / cap);
  } else if (arguments.modifier == modifier_alibi) {
    const long long distance = place.position - place.first_key_position - token;
    score -= static_cast<double>(arguments.alibi_slopes[place.head]) *
             static_cast<double>(distance < 0 ? -distance : distance);
  }
  const bool is_biased = arguments.bias.strides.query == 0 || place.query < arguments.bias.queries;
  if (arguments.modifier == modifier_bias && is_biased && token < arguments.bias.keys) {
    score += static_cast<double>(
        load_element(arguments.bias.data,
                     pair_index(arguments.bias, place.request, place.head, place.query, token),
                     arguments.bias_kind));
  }
  if (arguments.modifier == modifier_custom)
    score = customize_score(arguments, place, token, score);
  const ReferenceMask& mask = arguments.mask;
  if (is_additive(mask)) {
    score += static_cast<double>(load_element(
        mask.pairs.data, pair_index(mask.pairs, place.request, place.head, place.query, token),
        mask.pairs_kind));
  }
  return score;
}

__device__ void load_queries(const ReferenceArguments& arguments, const Tile& tile, double* q) {
  for (int i = threadIdx.x; i < reference_tile_rows * arguments.head_dim_qk; i += num_threads) {
    const int row = i / arguments.head_dim_qk;
    const long long token = first_token_row(arguments.queries, tile.request) +
                            query_of(arguments, tile.first_row + row);
    const long long source =
        tile.request * arguments.q_strides.batch + token * arguments.q_strides.token +
        head_of(arguments, tile, tile.first_row + row) * arguments.q_strides.head +
        i % arguments.head_dim_qk;
    q[i] = row < tile.num_rows
               ? static_cast<double>(load_element(arguments.q, source, arguments.kind_q))
               : 0.0;
  }
}

// Scores of all rows and keys into scratch memory; a warp takes a key, lane r ends up with row r.
// The largest norm of the keys that a row sees goes to `shared`.
__device__ void compute_scores(const ReferenceArguments& arguments, const Tile& tile,
                               SharedStorage& shared, const double* q, double* scores) {
  const int lane = threadIdx.x % 32;
  const int own_row = tile.first_row + min(lane, tile.num_rows - 1);
  const QueryPlace place = place_query(arguments, tile.request, head_of(arguments, tile, own_row),
                                       query_of(arguments, own_row));
  double key_norm = 0.0;
  for (int token = threadIdx.x / 32; token < tile.num_keys; token += num_warps) {
    const bool is_visible = sees(arguments, place, token);
    double score = 0.0;
    double squares = 0.0;
    if (__any_sync(0xffffffffu, is_visible)) {
      const long long k = token_index(arguments, arguments.k_strides, tile, token);
      double sums[reference_tile_rows] = {};
      for (int i = lane; i < arguments.head_dim_qk; i += 32) {
        const double key = load_element(arguments.k, k + i, arguments.kind_kv);
        squares += key * key;
#pragma unroll
        for (int row = 0; row < reference_tile_rows; ++row) {
          sums[row] += q[row * arguments.head_dim_qk + i] * key;
        }
      }
      squares = warp_reduce(squares, false);
#pragma unroll
      for (int row = 0; row < reference_tile_rows; ++row) {
        const double sum = warp_reduce(sums[row], false);
        score = lane == row ? sum : score;
      }
    }
    if (lane < tile.num_rows) {
      key_norm = is_visible ? fmax(key_norm, sqrt(squares)) : key_norm;
      score *= static_cast<double>(arguments.softmax_scale);
      scores[lane * static_cast<long long>(arguments.max_keys) + token] =
          is_visible ? modify_score(arguments, place, token, score) : negative_infinity_fp64();
    }
  }
  if (lane < tile.num_rows) {
    shared.key_norms[threadIdx.x / 32][lane] = key_norm;
  }
}

// What a row's sink adds to its sum of exponentials.
__device__ double sink_term(const ReferenceArguments& arguments, const Tile& tile, int row,
                            double maximum) {
  return arguments.sinks != nullptr
             ? exp(static_cast<double>(arguments.sinks[head_of(arguments, tile, row)]) - maximum)
             : 0.0;
}

// Bounds the magnitudes of the products of any score of the row. A warp takes it.
__device__ void store_magnitude(const ReferenceArguments& arguments, const Tile& tile,
                                const SharedStorage& shared, const double* q, int row) {
  double squares = 0.0;
  for (int i = threadIdx.x % 32; i < arguments.head_dim_qk; i += 32) {
    const double value = q[row * arguments.head_dim_qk + i];
    squares += value * value;
  }
  squares = warp_reduce(squares, false);
  double key_norm = 0.0;
  for (int warp = 0; warp < num_warps; ++warp) {
    key_norm = fmax(key_norm, shared.key_norms[warp][row]);
  }
  if (threadIdx.x % 32 == 0) {
    arguments.magnitude[result_index(arguments, tile, tile.first_row + row)] =
        fabs(static_cast<double>(arguments.softmax_scale)) * sqrt(squares) * key_norm;
  }
}

// Scores to normalised weights, in place, and the LSE; a warp takes a row.
__device__ void normalize(const ReferenceArguments& arguments, const Tile& tile,
                          const SharedStorage& shared, const double* q, double* scores) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < tile.num_rows; row += num_warps) {
    double* weights = scores + row * static_cast<long long>(arguments.max_keys);
    double maximum = negative_infinity_fp64();
    for (int token = lane; token < tile.num_keys; token += 32) {
      maximum = fmax(maximum, weights[token]);
    }
    maximum = warp_reduce(maximum, true);
    double sum = 0.0;
    for (int token = lane; token < tile.num_keys; token += 32) {
      const bool hidden = weights[token] == negative_infinity_fp64();
      weights[token] = hidden ? 0.0 : exp(weights[token] - maximum);
      sum += weights[token];
    }
    sum = warp_reduce(sum, false);
    const double denominator = sum + sink_term(arguments, tile, tile.first_row + row, maximum);
    for (int token = lane; token < tile.num_keys && sum > 0.0; token += 32) {
      weights[token] /= denominator;
    }
    if (lane == 0) {
      arguments.lse[result_index(arguments, tile, tile.first_row + row)] =
          sum > 0.0 ? maximum + log(sum) : negative_infinity_fp64();
    }
    store_magnitude(arguments, tile, shared, q, row);
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

// Which of the staged tokens any row gives weight to; no other is read.
__device__ void find_weighted(SharedStorage& shared) {
  if (threadIdx.x < tile_tokens) {
    bool is_weighted = false;
    for (int row = 0; row < reference_tile_rows; ++row) {
      is_weighted |= shared.weights[row][threadIdx.x] != 0.0;
    }
    shared.is_weighted[threadIdx.x] = is_weighted;
  }
}

__device__ void compute_output(const ReferenceArguments& arguments, const Tile& tile,
                               SharedStorage& shared, const double* weights) {
  for (int first_column = 0; first_column < arguments.head_dim_v; first_column += num_threads) {
    const int column = first_column + threadIdx.x;
    double out[reference_tile_rows] = {};
    for (int first = 0; first < tile.num_keys; first += tile_tokens) {
      __syncthreads();  // the weights staged before are no longer read
      for (int i = threadIdx.x; i < reference_tile_rows * tile_tokens; i += num_threads) {
        const int row = i / tile_tokens;
        const int token = first + i % tile_tokens;
        shared.weights[row][i % tile_tokens] =
            row < tile.num_rows && token < tile.num_keys
                ? weights[row * static_cast<long long>(arguments.max_keys) + token]
                : 0.0;
      }
      __syncthreads();  // all weights are staged
      find_weighted(shared);
      __syncthreads();  // it is known which tokens to read
      for (int token = first; token < min(first + tile_tokens, tile.num_keys); ++token) {
        if (column >= arguments.head_dim_v)
          break;
        if (!shared.is_weighted[token - first])
          continue;
        const double value = load_element(
            arguments.v, token_index(arguments, arguments.v_strides, tile, token) + column,
            arguments.kind_kv);
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
    reference_attention(const __grid_constant__ ReferenceArguments arguments) {
  extern __shared__ double q[];  // [reference_tile_rows, head_dim_qk]
  __shared__ SharedStorage shared;
  const long long index = arguments.first_tile + blockIdx.x;
  Tile tile;
  tile.request = static_cast<int>(index / arguments.tiles / arguments.num_kv_heads);
  tile.kv_head = static_cast<int>(index / arguments.tiles % arguments.num_kv_heads);
  tile.first_row = static_cast<int>(index % arguments.tiles) * reference_tile_rows;
  tile.num_queries = count_tokens(arguments.queries, tile.request);
  tile.num_keys = count_tokens(arguments.keys, tile.request);
  tile.num_rows = min(reference_tile_rows, tile.num_queries * arguments.q_per_kv - tile.first_row);
  if (tile.num_rows <= 0)
    return;
  double* scores = arguments.scores +
                   static_cast<long long>(blockIdx.x) * reference_tile_rows * arguments.max_keys;
  load_queries(arguments, tile, q);
  __syncthreads();  // the queries are loaded
  compute_scores(arguments, tile, shared, q, scores);
  __syncthreads();  // all scores and norms are written
  normalize(arguments, tile, shared, q, scores);
  __syncthreads();  // all weights are written
  compute_output(arguments, tile, shared, scores);
}
