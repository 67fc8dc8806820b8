#include "decode_problem.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnjit/kernel_launch.hpp"
#include "random_tokens.hpp"
#include "token_access.hpp"

namespace attnjit::check {

DecodeProblem::DecodeProblem(const CheckKernels& kernels, DecodeCase decode_case,
                             const DeviceStream& stream, std::uint64_t table_seed)
    : kernels_(kernels), case_(std::move(decode_case)) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  const int batch = case_.batch();
  max_seqlen_ = std::max(1, *std::max_element(case_.seq_lens.begin(), case_.seq_lens.end()));
  for (const int length : case_.seq_lens) {
    first_tokens_.push_back(static_cast<int>(visible_keys(case_, length, 0).begin));
  }
  seq_lens_ = make_device_buffer<int>(stream.device(), case_.seq_lens, stream.handle());
  device_first_tokens_ = make_device_buffer<int>(stream.device(), first_tokens_, stream.handle());
  call_.seq_lens = contiguous_view(seq_lens_.data(), DataType::int32, {batch});
  make_block_table(stream, table_seed);

  const std::int64_t q_tokens = std::int64_t{batch} * case_.seqlen_q * descriptor.num_q_heads;
  const std::int64_t q_count = q_tokens * descriptor.head_dim_qk;
  q_ = poisoned_buffer(stream, q_count * size_bytes(descriptor.dtype_q));
  call_.q =
      contiguous_view(q_.data(), descriptor.dtype_q,
                      {batch, case_.seqlen_q, descriptor.num_q_heads, descriptor.head_dim_qk});
  fill(q_.data(), q_count, descriptor.dtype_q, case_.seed, stream);

  call_.k_cache = make_cache(k_cache_, descriptor.head_dim_qk, case_.seed + 1, stream);
  if (descriptor.value_source == ValueSource::separate) {
    call_.v_cache = make_cache(v_cache_, descriptor.head_dim_v, case_.seed + 2, stream);
  }
  make_mask(stream);
  make_sinks(stream);

  out_ =
      poisoned_buffer(stream, q_tokens * descriptor.head_dim_v * size_bytes(descriptor.dtype_out));
  call_.out =
      contiguous_view(out_.data(), descriptor.dtype_out,
                      {batch, case_.seqlen_q, descriptor.num_q_heads, descriptor.head_dim_v});
  lse_ = poisoned_buffer(stream, q_tokens * size_bytes(DataType::fp32));
  call_.lse =
      contiguous_view(lse_.data(), DataType::fp32, {batch, descriptor.num_q_heads, case_.seqlen_q});
  call_.softmax_scale = static_cast<float>(
      case_.softmax_scale.value_or(1.0 / (case_.kv_scale * std::sqrt(descriptor.head_dim_qk))));
}

void DecodeProblem::make_block_table(const DeviceStream& stream, std::uint64_t table_seed) {
  std::vector<KeyRange> keys;
  for (std::size_t b = 0; b < case_.seq_lens.size(); ++b) {
    keys.push_back({first_tokens_[b], case_.seq_lens[b]});
  }
  const BlockTable table =
      check::make_block_table(keys, case_.descriptor.page_size, case_.arrangement, table_seed);
  num_pages_ = table.num_pages;
  block_table_ = make_device_buffer<int>(stream.device(), table.ids, stream.handle());
  stream.synchronize();  // `table` goes away
  call_.block_table =
      contiguous_view(block_table_.data(), DataType::int32, {case_.batch(), table.columns});
}

TensorView DecodeProblem::make_cache(DeviceBuffer& buffer, int head_dim, std::uint64_t seed,
                                     const DeviceStream& stream) {
  CacheLayout cache =
      lay_out_cache(case_.descriptor, case_.arrangement, case_.batch(), num_pages_, head_dim);
  buffer = poisoned_buffer(stream, cache.bytes);
  cache.view.data = buffer.data();
  FillTokensArguments arguments = {};
  arguments.data = buffer.data();
  arguments.strides = key_strides(case_.descriptor, cache.view);
  arguments.first_tokens = static_cast<const int*>(device_first_tokens_.data());
  arguments.end_tokens = device_seq_lens();
  arguments.block_table = static_cast<const int*>(call_.block_table.data);
  arguments.block_table_stride = call_.block_table.strides[0];
  arguments.seed = seed;
  arguments.max_tokens = max_seqlen_;
  arguments.scale = static_cast<float>(case_.kv_scale);
  arguments.offset = static_cast<float>(case_.kv_offset);
  arguments.num_heads = case_.descriptor.num_kv_heads;
  arguments.head_dim = head_dim;
  arguments.page_size = case_.descriptor.page_size;
  arguments.kind = element_kind(case_.descriptor.dtype_kv);
  fill_tokens(kernels_, arguments, case_.batch(), stream);
  return cache.view;
}

void DecodeProblem::fill(void* data, std::int64_t count, DataType type, std::uint64_t seed,
                         const DeviceStream& stream) {
  FillArguments arguments = {};
  arguments.data = data;
  arguments.count = count;
  arguments.seed = seed;
  arguments.kind = element_kind(type);
  arguments.one_in = 3;
  constexpr unsigned blocks = 1024;
  launch(kernels_.fill_random, {blocks, 1, 1}, stream.handle(), &arguments);
}

void DecodeProblem::make_mask(const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  if (descriptor.mask != MaskKind::materialized_bool &&
      descriptor.mask != MaskKind::materialized_additive) {
    return;
  }
  const int keys = max_seqlen_ - case_.mask_shortage;
  const std::int64_t count = std::int64_t{case_.batch()} * case_.seqlen_q * keys;
  mask_ = poisoned_buffer(stream, count * size_bytes(descriptor.dtype_mask));
  call_.mask = contiguous_view(mask_.data(), descriptor.dtype_mask,
                               {case_.batch(), 1, case_.seqlen_q, keys});
  fill(mask_.data(), count, descriptor.dtype_mask, case_.seed + 3, stream);
}

void DecodeProblem::make_sinks(const DeviceStream& stream) {
  const int heads = case_.descriptor.num_q_heads;
  if (!case_.descriptor.has_sinks) {
    return;
  }
  sinks_ = draw_sinks(heads, case_.sinks, case_.seed + 4);
  device_sinks_ = make_device_buffer<float>(stream.device(), sinks_, stream.handle());
  call_.sinks = contiguous_view(device_sinks_.data(), DataType::fp32, {heads});
}

ReferenceCall DecodeProblem::reference_call() const {
  return {.descriptor = case_.descriptor,
          .call = as_prefill(call_),
          .batch = case_.batch(),
          .max_queries = case_.seqlen_q,
          .max_keys = max_seqlen_};
}

std::int64_t DecodeProblem::num_values() const {
  return std::int64_t{case_.batch()} * case_.seqlen_q * case_.descriptor.num_q_heads *
         (case_.descriptor.head_dim_v + 1);
}

void DecodeProblem::replace_lengths(const std::vector<int>& seq_lens, const DeviceStream& stream) {
  case_.seq_lens = seq_lens;
  seq_lens_.upload(seq_lens.data(), seq_lens.size() * sizeof(int), stream.handle());
}

void DecodeProblem::poison_outputs(const DeviceStream& stream) {
  out_.fill(0xff, stream.handle());
  lse_.fill(0xff, stream.handle());
}

std::vector<unsigned char> DecodeProblem::download_outputs(const DeviceStream& stream) const {
  std::vector<unsigned char> bytes(out_.bytes() + lse_.bytes());
  out_.download(bytes.data(), out_.bytes(), stream.handle());
  lse_.download(bytes.data() + out_.bytes(), lse_.bytes(), stream.handle());
  return bytes;
}

}  // namespace attnjit::check
