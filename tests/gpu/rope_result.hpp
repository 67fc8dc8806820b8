// What a prefill with rope columns in a cache gives, and the merge of several over parts of its
// keys. On device 0.
#pragma once

#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/tensor_view.hpp"
#include "rope_example.hpp"

namespace attnjit::test {

struct RopeResult {
  Bits out;                // [queries, heads, depth]
  std::vector<float> lse;  // [heads, queries]
};

// Memory that a call of `example` writes, of NaN until then.
struct RopeOutputs {
  RopeOutputs(const RopeExample& example, CUstream_st* stream);

  RopeResult download(CUstream_st* stream) const;

  DeviceBuffer out_buffer;
  DeviceBuffer lse_buffer;
  TensorView out;
  TensorView lse;
};

// No element is the NaN that memory held before.
bool is_written(const RopeResult& result);

// Some requests have all their keys in the first chunk, one has none there.
std::vector<KeyChunk> two_chunks(const RopeExample& example);

RopeResult merge_results(const RopeExample& example, const std::vector<RopeResult>& results);

}  // namespace attnjit::test
