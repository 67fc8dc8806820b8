// Token-sparse MLA with mma.sync and cp.async: each query token attends to the tokens that its
// indices name, out of one pool or two, plain or encoded in fp8. Grid: x = head tiles of all query
// tokens.
//
// All heads of a query token read the same tokens: block_m heads are a thread block's rows, and
// its tiles are block_n gathered tokens, keys and values at once. A warp has whole rows: scores,
// probabilities and output of a row stay in its registers, and the warps that share rows each have
// their columns of the output.
#include "kernel_config.cuh"

#include "device/async_copy.cuh"
#include "device/attention_sink.cuh"
#include "device/prefill_products.cuh"
#include "device/prefill_softmax.cuh"
#include "device/softmax_math.cuh"
#include "device/sparse_mla_block.cuh"
#include "device/sparse_mla_tiles.cuh"
#include "interface/sparse_mla_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

// Products to scores in units of log2, which are -inf where an entry names no token.
__device__ __forceinline__ void finish_scores(const unsigned (&valid)[valid_words], float factor,
                                              const Position& at, Scores& scores) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < key_tiles; ++j) {
      const unsigned bits = valid[j / 4] >> j % 4 * 8 + at.lane % 4 * 2;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& score = scores[i][j][c];
        score = (bits >> c % 2 & 1u) != 0 ? score * factor : negative_infinity();
      }
    }
  }
}

__device__ __forceinline__ void compute_probabilities(SharedStorage& shared, const Element* k,
                                                      float factor, const Position& at, int tile,
                                                      Accumulators& sums,
                                                      Probabilities& probabilities) {
  Scores scores;
  compute_scores(shared.elements(), k, at, scores);
  finish_scores(shared.valid[tile % 4], factor, at, scores);
  update_softmax(scores, 1.0f, sums);
  pack_probabilities(scores, probabilities);
}

// A tile is copied while the one before is used; its tokens are looked up one tile earlier, and
// their indices read one tile earlier still.
__device__ __forceinline__ void process_tiles(SharedStorage& shared,
                                              const SparseMlaArguments& arguments,
                                              const SparseMlaWork& work, const Position& at,
                                              Accumulators& sums) {
  const float factor = arguments.softmax_scale * log2_e;
  const int num_tiles = work.num_tiles();
  find_tokens(shared, arguments, work, 0, read_index(arguments, work, 0));
  find_tokens(shared, arguments, work, 1, read_index(arguments, work, 1));
  int index = read_index(arguments, work, 2);
  __syncthreads();  // the first tokens are found
  if (num_tiles > 0)
    copy_tokens(shared, arguments, 0);
  commit_copies();
#pragma unroll 1
  for (int tile = 0; tile < num_tiles; ++tile) {
    wait_for_copies<0>();
    __syncthreads();  // this tile has arrived for all; the one before is no longer read; the next
                      // one's tokens are found
    if constexpr (is_encoded) {
      decode_tokens(shared);
      __syncthreads();  // all of it is decoded; its copy is no longer read
    }
    if (tile + 1 < num_tiles)
      copy_tokens(shared, arguments, tile + 1);
    commit_copies();
    find_tokens(shared, arguments, work, tile + 2, index);
    index = read_index(arguments, work, tile + 3);
    const Element* k = shared.elements() + first_key_element + tile % key_tile_count * key_elements;
    Probabilities probabilities;
    compute_probabilities(shared, k, factor, at, tile, sums, probabilities);
    accumulate_output(k, at, probabilities, sums);
  }
}

// Divides by the sums, rounds, and puts the rows of this warp into shared memory; writes LSEs and
// greatest scores.
__device__ __forceinline__ void finish_rows(SharedStorage& shared,
                                            const SparseMlaArguments& arguments,
                                            const SparseMlaWork& work, const Position& at,
                                            const Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.first_row + i * 16 + at.lane / 4 + half * 8;
      const int head = work.first_head + row;
      const float sum = row_total(sums.row_sum[i][half]);
      const float maximum = sums.row_max[i][half];
      const bool sees_nothing = sum == 0.0f;
      const bool is_head = head < arguments.num_q_heads;
      const float sink = is_head ? load_sink<config::has_sinks>(arguments.sinks, head) : 0.0f;
      const float scale =
          sees_nothing ? 0.0f
                       : reciprocal_approximate(denominator<config::has_sinks>(sink, maximum, sum));
      Element* out = shared.elements() + row * pitch_out + at.first_column + at.lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < value_tiles; ++j) {
        *reinterpret_cast<unsigned*>(out + j * 8) = pack_pair<config::dtype>(
            sums.out[i][j][half * 2] * scale, sums.out[i][j][half * 2 + 1] * scale);
      }
      if (is_head && at.first_column == 0 && at.lane % 4 == 0) {
        if (arguments.lse != nullptr) {
          arguments.lse[row_offset(arguments.lse_strides, work, head)] =
              sees_nothing ? negative_infinity() : (maximum + log2_approximate(sum)) * ln_2;
        }
        if (arguments.max_logits != nullptr)
          arguments.max_logits[row_offset(arguments.max_logits_strides, work, head)] =
              maximum * ln_2;
      }
    }
  }
}

__device__ __forceinline__ void store_output(SharedStorage& shared,
                                             const SparseMlaArguments& arguments,
                                             const SparseMlaWork& work) {
  constexpr int chunks = config::head_dim_v / 8;
#pragma unroll 2
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int head = work.first_head + i / chunks;
    const int column = i % chunks * 8;
    if (head < arguments.num_q_heads) {
      *reinterpret_cast<uint4*>(static_cast<Element*>(arguments.out) +
                                row_offset(arguments.out_strides, work, head) + column) =
          *reinterpret_cast<const uint4*>(shared.elements() + i / chunks * pitch_out + column);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    sparse_mla_sm80(const __grid_constant__ SparseMlaArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(shared_bytes);
  const SparseMlaWork work = find_work(arguments, blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const Position at = {static_cast<int>(threadIdx.x % 32), warp % row_warps * warp_rows,
                       warp / row_warps * warp_columns};
  clear_padding<padded_qk - config::head_dim_qk>(shared);
  copy_queries(shared, arguments, work);
  Accumulators sums;
  reset(sums);
  process_tiles(shared, arguments, work, at, sums);
  wait_for_copies<0>();
  __syncthreads();  // no copy is under way; queries and keys are no longer read
  finish_rows(shared, arguments, work, at, sums);
  __syncthreads();  // all rows are in shared memory
  store_output(shared, arguments, work);
}
