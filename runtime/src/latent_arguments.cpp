#include "latent_arguments.hpp"

#include <algorithm>

#include "driver.hpp"
#include "tensor_map.hpp"

namespace attnjit {
namespace {

using kernel_interface::CacheStrides;
using kernel_interface::PagedDecodeArguments;
using kernel_interface::QueryStrides;
using kernel_interface::SeesawDecodeArguments;
using kernel_interface::SwappedDecodeArguments;

constexpr int box_columns = 64;  // 128 bytes, the swizzle's span
constexpr int tile_tokens = 64;

// A stride in bytes; of a dimension of extent 1 any legal one will do.
std::int64_t stride_bytes(std::int64_t extent, std::int64_t stride, DataType type) {
  constexpr std::int64_t any_legal = 16;
  return extent > 1 ? stride * size_bytes(type) : any_legal;
}

// Inner to outer: columns, tokens of a page, kv heads, pages, requests.
TensorMapShape cache_shape(const AttentionDescriptor& descriptor, const DecodeCall& call,
                           const CacheStrides& strides) {
  const bool is_per_request = call.k_cache.rank == 5;
  const DataType type = descriptor.dtype_kv;
  const std::int64_t pages = call.k_cache.shape[is_per_request ? 1 : 0];
  const std::int64_t requests = is_per_request ? call.k_cache.shape[0] : 1;
  TensorMapShape shape;
  shape.dtype = type;
  shape.rank = 5;
  shape.extents = {descriptor.head_dim_qk, descriptor.page_size, descriptor.num_kv_heads, pages,
                   requests};
  shape.strides_bytes = {stride_bytes(descriptor.page_size, strides.row, type),
                         stride_bytes(descriptor.num_kv_heads, strides.head, type),
                         stride_bytes(pages, strides.block, type),
                         stride_bytes(requests, strides.batch, type)};
  shape.box = {box_columns, std::min(tile_tokens, descriptor.page_size), 1, 1, 1};
  shape.swizzle = Swizzle::b128;
  return shape;
}

// Inner to outer: columns, heads, query tokens, requests; a box takes all rows of one kv head.
TensorMapShape query_shape(const AttentionDescriptor& descriptor, const DecodeCall& call,
                           const QueryStrides& strides) {
  const DataType type = descriptor.dtype_q;
  const std::int64_t batch = call.q.shape[0];
  const std::int64_t seqlen_q = call.q.shape[1];
  TensorMapShape shape;
  shape.dtype = type;
  shape.rank = 4;
  shape.extents = {descriptor.head_dim_qk, descriptor.num_q_heads, seqlen_q, batch};
  shape.strides_bytes = {stride_bytes(descriptor.num_q_heads, strides.head, type),
                         stride_bytes(seqlen_q, strides.token, type),
                         stride_bytes(batch, strides.batch, type)};
  shape.box = {box_columns, descriptor.q_per_kv(), static_cast<int>(seqlen_q), 1};
  shape.swizzle = Swizzle::b128;
  return shape;
}

// All that both kernels take alike. Where rows are gathered, pointer and strides are all it takes.
template <typename Arguments>
Arguments arguments_of(const Driver& driver, const AttentionDescriptor& descriptor, KvCopy kv_copy,
                       const DecodeCall& call, const PagedDecodeArguments& arguments) {
  Arguments result = {};
  result.call = arguments;
  if (kv_copy == KvCopy::tensor) {
    result.kv_batch_step = call.k_cache.rank == 5 ? 1 : 0;
    result.kv = encode_tensor_map(
        driver, "k_cache", cache_shape(descriptor, call, arguments.k_strides), arguments.k_cache);
  }
  return result;
}

}  // namespace

SwappedDecodeArguments make_swapped_arguments(const AttentionDescriptor& descriptor, KvCopy kv_copy,
                                              const DecodeCall& call,
                                              const PagedDecodeArguments& arguments,
                                              const LoadedKernel& kernel) {
  const Driver& driver = *kernel.driver;
  const ScopedContext context(driver, kernel.context);  // encoding needs one
  auto result = arguments_of<SwappedDecodeArguments>(driver, descriptor, kv_copy, call, arguments);
  result.q = encode_tensor_map(driver, "q", query_shape(descriptor, call, arguments.q_strides),
                               arguments.q);
  return result;
}

SeesawDecodeArguments make_seesaw_arguments(const AttentionDescriptor& descriptor, KvCopy kv_copy,
                                            const DecodeCall& call,
                                            const PagedDecodeArguments& arguments,
                                            const LoadedKernel& kernel) {
  const Driver& driver = *kernel.driver;
  const ScopedContext context(driver, kernel.context);  // encoding needs one
  return arguments_of<SeesawDecodeArguments>(driver, descriptor, kv_copy, call, arguments);
}

}  // namespace attnjit
