// The interface of FlashMLA's tensor-shape reference (operations 1 and 2 of the contract):
// get_mla_metadata and flash_mla_with_kvcache, with every check and error code it documents, on top
// of paged_decode.hpp. get_mla_metadata is pure and needs no GPU.
//
// Symbols: B batch, Hq and Hk query and kv heads, S query tokens (1 in plain decode), D head dim,
// Nblk blocks of 64 tokens per request.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/paged_decode.hpp"

namespace attnjit {

enum class FlashMlaErrorCode {
  head_ratio,        // Hq is not an integer multiple of Hk
  block_count,       // the block table does not fit the cache or the lengths
  inner_contiguity,  // q, or the caches within (block, D), are not contiguous
  mask_length,       // the mask's last dimension is shorter than the longest sequence
  cache_overflow,    // a sequence is longer than its blocks
  dtype_mismatch,    // q and caches differ in type
  stride_order,      // strides are not monotonic, or overlap
  shape_mismatch,    // a tensor's rank or extent contradicts the others
};
std::string_view to_string(FlashMlaErrorCode);

// what() gives cause, values and fix.
class FlashMlaError : public std::runtime_error {
 public:
  FlashMlaError(FlashMlaErrorCode code, const std::string& message);
  FlashMlaErrorCode code() const { return code_; }

 private:
  FlashMlaErrorCode code_;
};

// How many blocks a cache may have beyond what the longest sequence needs.
enum class BlockCountPolicy {
  at_least,  // more is fine: pre-allocated caches, CUDA graphs
  exact,     // Nblk must be ceil(longest / 64)
};

struct MlaMetadataOptions {
  DataType dtype = DataType::bf16;
  BlockCountPolicy block_count = BlockCountPolicy::at_least;
  int head_dim_v = 0;  // 0: v_cache is a tensor of its own with head dim D
  ValueSource value_source = ValueSource::separate;  // prefix_of_k: V = K[..., :head_dim_v]
  MaskKind mask = MaskKind::causal;                  // or materialized_bool, materialized_additive
  DataType dtype_mask = DataType::uint8;
  bool batch_invariant = false;  // as AttentionDescriptor::batch_invariant
  TargetDevice target;           // whose split to plan; default: an H200
};

// Validated dimensions and the split of the batch. Host data only.
struct MlaMetadata {
  AttentionDescriptor descriptor;
  int batch = 0;
  int seqlen_q = 0;
  int num_blocks = 0;  // Nblk
  int max_seqlen_kv = 0;
  bool has_spare_blocks = false;                // Nblk is larger than the longest sequence needs
  std::vector<int> seq_lens;                    // [B]
  std::array<std::int64_t, 4> q_strides = {};   // of contiguous q [B, Hq, S, D]
  std::array<std::int64_t, 5> kv_strides = {};  // of a contiguous cache [B, Hk, Nblk, 64, D]
  DecodeGrid grid;
  std::vector<int>
      pieces_per_request;  // thread blocks per row tile that share a request; 1 = not split
};

// Checks shapes and lengths and plans the split. q_shape: [B, Hq, S, D]; kv_shape:
// [B, Hk, Nblk, 64, D]; block_table: int32 [B, Nblk], contiguous (its data is not read); seq_lens:
// [B], prompt plus decoded tokens. Throws FlashMlaError, DescriptorError.
MlaMetadata get_mla_metadata(std::span<const std::int64_t> q_shape,
                             std::span<const std::int64_t> kv_shape, const TensorView& block_table,
                             std::span<const int> seq_lens, const MlaMetadataOptions& options = {});

// The metadata's split on CUDA device `device`, to be used by the calls of one decode step. May
// compile. Throws as AttentionRuntime::prepare_decode and DecodePlan do.
DecodePlan make_mla_plan(AttentionRuntime& runtime, const MlaMetadata& metadata, int device,
                         CUstream_st* stream);

struct FlashMlaCall {
  TensorView q;            // [B, Hq, S, D], contiguous
  TensorView k_cache;      // [B, Hk, Nblk, 64, D], contiguous within the last two
  TensorView v_cache;      // the same; not given if V is a prefix of K
  TensorView block_table;  // int32 [B, Nblk], contiguous: ids count within a request's blocks
  TensorView seq_lens;     // int32 [B], the lengths the metadata was made from
  TensorView mask;  // [B, 1, 1, at least the longest sequence], bool or additive; or not given
  TensorView out;   // [B, Hq, S, head_dim_v], contiguous
  TensorView lse;   // fp32 [B, Hq, S], natural logarithm; or not given
  float softmax_scale = 0;  // 0 = 1 / sqrt(D)
};

// Queues attention over the paged cache on `stream`. Causal if the metadata says no mask.
// `workspace`: plan.workspace_bytes() of device memory. Never compiles. Throws FlashMlaError,
// ArgumentError.
void flash_mla_with_kvcache(const FlashMlaCall& call, const MlaMetadata& metadata,
                            const DecodePlan& plan, void* workspace, std::int64_t workspace_bytes,
                            CUstream_st* stream);

}  // namespace attnjit
