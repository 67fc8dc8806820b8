#include "rope_result.hpp"

#include <algorithm>
#include <iterator>

#include "attnjit/merge_states.hpp"
#include "gpu_runtime.hpp"

namespace attnjit::test {
namespace {

std::size_t count_rows(const RopeExample& example) {
  return static_cast<std::size_t>(example.total_queries()) *
         static_cast<std::size_t>(example.heads);
}

}  // namespace

RopeOutputs::RopeOutputs(const RopeExample& example, CUstream_st* stream)
    : out_buffer(0, 2 * count_rows(example) * static_cast<std::size_t>(example.depth)),
      lse_buffer(0, 4 * count_rows(example)),
      out(contiguous_view(out_buffer.data(), example.dtype,
                          {example.total_queries(), example.heads, example.depth})),
      lse(contiguous_view(lse_buffer.data(), DataType::fp32,
                          {example.heads, example.total_queries()})) {
  out_buffer.fill(0xff, stream);
  lse_buffer.fill(0xff, stream);
}

RopeResult RopeOutputs::download(CUstream_st* stream) const {
  return {download_values<std::uint16_t>(out_buffer, out_buffer.bytes() / 2, stream),
          download_values<float>(lse_buffer, lse_buffer.bytes() / 4, stream)};
}

bool is_written(const RopeResult& result) {
  return std::count(result.out.begin(), result.out.end(), 0xffff) == 0 &&
         std::none_of(result.lse.begin(), result.lse.end(), [](float lse) { return lse != lse; });
}

std::vector<KeyChunk> two_chunks(const RopeExample& example) {
  KeyChunk first = all_keys(example);
  constexpr int cuts[] = {64, 17, 1000, 5, 0, 190};
  for (int b = 0; b < example.batch(); ++b) {
    first.end[b] = std::min(example.keys[b], cuts[b % std::size(cuts)]);
  }
  return {first, {first.end, example.keys}};
}

RopeResult merge_results(const RopeExample& example, const std::vector<RopeResult>& results) {
  const DeviceStream stream(0);
  CUstream_st* const handle = stream.handle();
  std::vector<DeviceBuffer> buffers;
  std::vector<PartialAttention> parts;
  const RopeOutputs outputs(example, handle);
  for (const RopeResult& result : results) {
    PartialAttention part = {outputs.out, permuted_view(outputs.lse, {1, 0})};
    buffers.push_back(make_device_buffer<std::uint16_t>(0, result.out, handle));
    part.out.data = buffers.back().data();
    buffers.push_back(make_device_buffer<float>(0, result.lse, handle));
    part.lse.data = buffers.back().data();
    parts.push_back(part);
  }
  merge_attention_states(
      *gpu_runtime().prepare_merge(merge_states_descriptor(example.depth, example.dtype), 0),
      {parts, outputs.out, permuted_view(outputs.lse, {1, 0})}, handle);
  return outputs.download(handle);
}

}  // namespace attnjit::test
