// Attention in fp64, straight from the definition: all scores, their maximum, the sum of their
// exponentials, the weighted mean of V. One thread block per query row.
#include "check_elements.cuh"

using namespace attnjit::check;

namespace {

constexpr int num_threads = 256;
constexpr int num_warps = num_threads / 32;

struct Row {
  long long request;
  int query;
  int head;
  int kv_head;
  int seqlen_kv;
};

__device__ double negative_infinity() { return __longlong_as_double(0xfff0000000000000LL); }

__device__ double block_reduce(double* parts, double value, bool is_maximum) {
  for (int step = 16; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, value, step);
    value = is_maximum ? fmax(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();  // all parts are written
  double result = parts[0];
  for (int i = 1; i < num_warps; ++i) {
    result = is_maximum ? fmax(result, parts[i]) : result + parts[i];
  }
  __syncthreads();  // parts are no longer read
  return result;
}

__device__ long long token_index(const ReferenceArguments& arguments,
                                 const attnjit::kernel_interface::CacheStrides& strides,
                                 const Row& row, int token) {
  const int page = arguments.call.block_table[row.request * arguments.call.block_table_stride +
                                              token / arguments.page_size];
  return row.request * strides.batch + page * strides.block + row.kv_head * strides.head +
         token % arguments.page_size * strides.row;
}

// The score of one key for a whole warp, -inf if the row does not see it.
__device__ double score_of(const ReferenceArguments& arguments, const Row& row, int token) {
  const int hidden = arguments.call.seqlen_q - 1 - row.query;
  if (arguments.mask == mask_causal && token >= row.seqlen_kv - hidden) return negative_infinity();
  const long long mask_index = row.request * arguments.call.mask_strides.batch +
                               row.head * arguments.call.mask_strides.head +
                               row.query * arguments.call.mask_strides.query +
                               token * arguments.call.mask_strides.key;
  if (arguments.mask == mask_bool &&
      static_cast<const unsigned char*>(arguments.call.mask)[mask_index] == 0) {
    return negative_infinity();
  }
  const long long q = row.request * arguments.call.q_strides.batch +
                      row.query * arguments.call.q_strides.token +
                      row.head * arguments.call.q_strides.head;
  const long long k = token_index(arguments, arguments.call.k_strides, row, token);
  double sum = 0.0;
  for (int i = threadIdx.x % 32; i < arguments.head_dim_qk; i += 32) {
    sum += static_cast<double>(load_element(arguments.call.q, q + i, arguments.kind)) *
           static_cast<double>(load_element(arguments.call.k_cache, k + i, arguments.kind));
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  sum *= static_cast<double>(arguments.call.softmax_scale);
  if (arguments.mask == mask_additive) {
    sum += static_cast<double>(
        load_element(arguments.call.mask, mask_index, arguments.mask_kind));
  }
  return sum;
}

__device__ void store_output(const ReferenceArguments& arguments, const Row& row,
                             const double* scores, double maximum, double sum, long long index) {
  const attnjit::kernel_interface::CacheStrides& strides =
      arguments.value_is_prefix ? arguments.call.k_strides : arguments.call.v_strides;
  const void* cache = arguments.value_is_prefix ? arguments.call.k_cache : arguments.call.v_cache;
  for (int column = threadIdx.x; column < arguments.head_dim_v; column += num_threads) {
    double out = 0.0;
    for (int token = 0; token < row.seqlen_kv; ++token) {
      if (scores[token] == negative_infinity()) continue;
      const long long v = token_index(arguments, strides, row, token) + column;
      out += exp(scores[token] - maximum) *
             static_cast<double>(load_element(cache, v, arguments.kind));
    }
    arguments.out[index * arguments.head_dim_v + column] = sum == 0.0 ? 0.0 : out / sum;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads)
    reference_decode(const __grid_constant__ ReferenceArguments arguments) {
  __shared__ double parts[num_warps];
  const long long index = arguments.first_row + blockIdx.x;
  const int num_q_heads = arguments.call.num_kv_heads * arguments.q_per_kv;
  Row row;
  row.head = static_cast<int>(index % num_q_heads);
  row.query = static_cast<int>(index / num_q_heads % arguments.call.seqlen_q);
  row.request = index / num_q_heads / arguments.call.seqlen_q;
  row.kv_head = row.head / arguments.q_per_kv;
  row.seqlen_kv = arguments.call.seq_lens[row.request];
  double* scores = arguments.scores + static_cast<long long>(blockIdx.x) * arguments.max_seqlen;

  double maximum = negative_infinity();
  for (int token = threadIdx.x / 32; token < row.seqlen_kv; token += num_warps) {
    const double score = score_of(arguments, row, token);
    if (threadIdx.x % 32 == 0) scores[token] = score;
    maximum = fmax(maximum, score);
  }
  maximum = block_reduce(parts, maximum, true);  // its barriers also publish the scores
  double sum = 0.0;
  for (int token = threadIdx.x; token < row.seqlen_kv; token += num_threads) {
    sum += scores[token] == negative_infinity() ? 0.0 : exp(scores[token] - maximum);
  }
  sum = block_reduce(parts, sum, false);
  store_output(arguments, row, scores, maximum, sum, index);
  if (threadIdx.x == 0) {
    arguments.lse[index] = sum == 0.0 ? negative_infinity() : maximum + log(sum);
  }
}
