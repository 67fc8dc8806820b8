// Token-sparse attention in fp64 straight from the definition. One thread block per query token and
// head.
#include "device/check_elements.cuh"
#include "sparse_mla_reference_arguments.h"

using namespace attnjit::check;

namespace {

__device__ double negative_infinity() {
  return __longlong_as_double(0xfff0000000000000LL);
}

// One warp to an entry. Returns the largest magnitude of the products of an entry of this warp.
__device__ double compute_scores(const SparseMlaReferenceArguments& arguments, long long token,
                                 int head, double* scores) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const long long q = token / arguments.seqlen_q * arguments.q_strides.batch +
                      token % arguments.seqlen_q * arguments.q_strides.token +
                      head * arguments.q_strides.head;
  double magnitude = 0.0;
  for (int entry = threadIdx.x / 32; entry < arguments.entries; entry += blockDim.x / 32) {
    const long long row = arguments.rows[token * arguments.entries + entry];
    double product = 0.0;
    double magnitudes = 0.0;
    for (int i = lane; row >= 0 && i < arguments.head_dim_qk; i += 32) {
      const double term = static_cast<double>(load_element(arguments.q, q + i, arguments.kind)) *
                          arguments.tokens[row * arguments.head_dim_qk + i];
      product += term;
      magnitudes += fabs(term);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      product += __shfl_xor_sync(0xffffffffu, product, distance);
      magnitudes += __shfl_xor_sync(0xffffffffu, magnitudes, distance);
    }
    magnitude = fmax(magnitude, magnitudes * fabs(arguments.softmax_scale));
    if (lane == 0)
      scores[entry] = row >= 0 ? product * arguments.softmax_scale : negative_infinity();
  }
  return magnitude;
}

}  // namespace

extern "C" __global__ void reference_sparse_mla(
    const __grid_constant__ SparseMlaReferenceArguments arguments) {
  const long long row = blockIdx.x;
  const int head = static_cast<int>(row % arguments.num_q_heads);
  const long long token = row / arguments.num_q_heads;
  double* scores = arguments.scores + row * arguments.entries;
  __shared__ double magnitudes[32];  // of a warp each
  magnitudes[threadIdx.x / 32] = compute_scores(arguments, token, head, scores);
  __syncthreads();  // all scores and magnitudes are written
  double maximum = negative_infinity();
  for (int entry = 0; entry < arguments.entries; ++entry)
    maximum = fmax(maximum, scores[entry]);
  const bool sees_nothing = maximum == negative_infinity();
  double sum = 0.0;
  for (int entry = 0; entry < arguments.entries && !sees_nothing; ++entry)
    sum += exp(scores[entry] - maximum);
  const double sink = arguments.sinks != nullptr && !sees_nothing
                          ? exp(static_cast<double>(arguments.sinks[head]) - maximum)
                          : 0.0;
  for (int i = threadIdx.x; i < arguments.head_dim_v; i += blockDim.x) {
    double out = 0.0;
    for (int entry = 0; entry < arguments.entries && !sees_nothing; ++entry) {
      const long long value = arguments.rows[token * arguments.entries + entry];
      if (value >= 0) {
        out += exp(scores[entry] - maximum) * arguments.tokens[value * arguments.head_dim_qk + i];
      }
    }
    arguments.out[row * arguments.head_dim_v + i] = sees_nothing ? 0.0 : out / (sum + sink);
  }
  if (threadIdx.x == 0) {
    arguments.lse[row] = sees_nothing ? negative_infinity() : maximum + log(sum);
    arguments.max_logits[row] = maximum;
    arguments.magnitude[row] = 0.0;
    for (int warp = 0; warp < blockDim.x / 32; ++warp)
      arguments.magnitude[row] = fmax(arguments.magnitude[row], magnitudes[warp]);
  }
}
