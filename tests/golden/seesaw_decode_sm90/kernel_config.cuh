// The constants of one seesaw_decode_sm90 kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of q, k, v and out
constexpr int head_dim_qk = 576;  // columns of q and k
constexpr int head_dim_v = 512;  // columns of v and out
constexpr int q_per_kv = 128;  // query heads that share a kv head; packed into the rows
constexpr int page_size = 64;  // tokens per page of the cache
constexpr ValueSource value_source = ValueSource::prefix_of_k;  // v is its own tensor, or the first columns of k
constexpr MaskKind mask = MaskKind::none;  // which keys a query sees, besides those past the sequence's end
constexpr int window_left = -1;  // keys of a window before the query's own; -1 = all
constexpr int window_right = -1;  // keys of a window after it; unused without one
constexpr bool has_sinks = false;  // a logit per query head joins the softmax's denominator
constexpr KvCopy kv_copy = KvCopy::tensor;  // whole boxes by tensor copies, or rows gathered
constexpr int chunk_blocks = 0;  // every request is cut at multiples of so many; 0: by the batch
constexpr int shared_memory_bytes = 224256;  // dynamic shared memory of a block
}  // namespace config
