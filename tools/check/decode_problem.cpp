#include "decode_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "attnjit/kernel_launch.hpp"
#include "decode_arguments.hpp"

namespace attnjit::check {
namespace {

// A page id that no cache holds: reading through it faults.
constexpr int poisoned_page = 2147480000;
constexpr std::int64_t unused_table_columns = 2;
constexpr std::int64_t unused_pages = 3;

std::int64_t ceil_divide(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// A permutation of 0 … count - 1, the same with every standard library.
std::vector<int> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<int> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[random() % i]);
  }
  return ids;
}

// Of one query head. Uniform: a sink of any size meets every head.
float draw_sink(std::mt19937_64& random, SinkSize size, int head) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float unit = static_cast<float>(random() >> 40) * 0x1p-24F;
  switch (size) {
    case SinkSize::ordinary:
      break;
    case SinkSize::large:  // e^-10 to e^-40 of the output is left, or nothing in fp64 either
      return head % 2 == 0 ? 10.0F + 30.0F * unit : 1e4F + 1e5F * unit;
    case SinkSize::negative:
      return -50.0F - 1e5F * unit;
    case SinkSize::infinite:
      if (head % 3 < 2) {
        return head % 3 == 0 ? infinity : -infinity;
      }
  }
  return 8.0F * unit;
}

DeviceBuffer poisoned_buffer(const DeviceStream& stream, std::int64_t bytes) {
  DeviceBuffer buffer(stream.device(), static_cast<std::size_t>(bytes));
  buffer.fill(0xff, stream.handle());  // NaN in every floating-point type in use
  return buffer;
}

}  // namespace

int element_kind(DataType type) {
  switch (type) {
    case DataType::bf16:
      return element_bf16;
    case DataType::fp16:
      return element_fp16;
    case DataType::fp32:
      return element_fp32;
    default:
      return element_uint8;
  }
}

DecodeProblem::DecodeProblem(const CheckKernels& kernels, DecodeCase decode_case,
                             const DeviceStream& stream, std::uint64_t table_seed)
    : kernels_(kernels), case_(std::move(decode_case)) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  const int batch = case_.batch();
  max_seqlen_ = std::max(1, *std::max_element(case_.seq_lens.begin(), case_.seq_lens.end()));
  pages_per_request_ = ceil_divide(max_seqlen_, descriptor.page_size);

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

  call_.k_cache = make_cache(k_cache_, descriptor.head_dim_qk, stream);
  fill_cache(call_.k_cache, descriptor.head_dim_qk, case_.seed + 1, stream);
  if (descriptor.value_source == ValueSource::separate) {
    call_.v_cache = make_cache(v_cache_, descriptor.head_dim_v, stream);
    fill_cache(call_.v_cache, descriptor.head_dim_v, case_.seed + 2, stream);
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
  const bool is_per_request = case_.arrangement == CacheArrangement::per_request;
  const std::int64_t columns = pages_per_request_ + unused_table_columns;
  std::int64_t used = is_per_request ? pages_per_request_ : 0;
  for (std::size_t b = 0; b < case_.seq_lens.size() && !is_per_request; ++b) {
    used += ceil_divide(case_.seq_lens[b], case_.descriptor.page_size);
  }
  num_pages_ = used + unused_pages;

  std::vector<int> table(case_.seq_lens.size() * static_cast<std::size_t>(columns), poisoned_page);
  std::vector<int> ids = shuffled(num_pages_, table_seed);
  std::size_t next = 0;
  for (std::size_t b = 0; b < case_.seq_lens.size(); ++b) {
    if (is_per_request) {
      ids = shuffled(num_pages_, table_seed + b);
      next = 0;
    }
    const std::int64_t pages = ceil_divide(case_.seq_lens[b], case_.descriptor.page_size);
    for (std::int64_t i = first_tokens_[b] / case_.descriptor.page_size; i < pages; ++i) {
      table[b * static_cast<std::size_t>(columns) + static_cast<std::size_t>(i)] = ids[next++];
    }
  }
  block_table_ = make_device_buffer<int>(stream.device(), table, stream.handle());
  stream.synchronize();  // `table` goes away
  call_.block_table =
      contiguous_view(block_table_.data(), DataType::int32, {case_.batch(), columns});
}

TensorView DecodeProblem::make_cache(DeviceBuffer& buffer, int head_dim,
                                     const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  const bool is_hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
  const std::int64_t second = is_hnd ? descriptor.num_kv_heads : descriptor.page_size;
  const std::int64_t third = is_hnd ? descriptor.page_size : descriptor.num_kv_heads;
  const std::int64_t page_elements = second * third * head_dim;
  const std::int64_t caches =
      case_.arrangement == CacheArrangement::per_request ? case_.batch() : 1;
  const std::int64_t layers = case_.arrangement == CacheArrangement::layered ? 2 : 1;
  buffer = poisoned_buffer(
      stream, caches * num_pages_ * layers * page_elements * size_bytes(descriptor.dtype_kv));
  TensorView cache =
      contiguous_view(buffer.data(), descriptor.dtype_kv, {num_pages_, second, third, head_dim});
  if (case_.arrangement == CacheArrangement::per_request) {
    // Within a request the heads lie outermost: [num_kv_heads, pages, page_size, head_dim].
    const TensorView heads_first = contiguous_view(
        buffer.data(), descriptor.dtype_kv,
        {caches, descriptor.num_kv_heads, num_pages_, descriptor.page_size, head_dim});
    return is_hnd ? permuted_view(heads_first, {0, 2, 1, 3, 4})
                  : permuted_view(heads_first, {0, 2, 3, 1, 4});
  }
  cache.strides[0] *= layers;
  return cache;
}

void DecodeProblem::fill_cache(const TensorView& cache, int head_dim, std::uint64_t seed,
                               const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  DecodeCall only_cache;
  only_cache.k_cache = cache;
  FillCacheArguments arguments = {};
  arguments.cache = cache.data;
  arguments.block_table = static_cast<const int*>(call_.block_table.data);
  arguments.seq_lens = device_seq_lens();
  arguments.first_tokens = static_cast<const int*>(device_first_tokens_.data());
  arguments.strides = make_decode_arguments(descriptor, only_cache).k_strides;
  arguments.block_table_stride = call_.block_table.strides[0];
  arguments.seed = seed;
  arguments.batch = case_.batch();
  arguments.num_kv_heads = descriptor.num_kv_heads;
  arguments.head_dim = head_dim;
  arguments.page_size = descriptor.page_size;
  arguments.max_seqlen = max_seqlen_;
  arguments.kind = element_kind(descriptor.dtype_kv);
  arguments.scale = static_cast<float>(case_.kv_scale);
  arguments.offset = static_cast<float>(case_.kv_offset);
  const auto blocks = static_cast<unsigned>(std::int64_t{case_.batch()} * max_seqlen_);
  launch(kernels_.fill_cache, {blocks, 1, 1}, stream.handle(), &arguments);
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
  std::mt19937_64 random(case_.seed + 4);
  for (int head = 0; head < heads; ++head) {
    sinks_.push_back(draw_sink(random, case_.sinks, head));
  }
  device_sinks_ = make_device_buffer<float>(stream.device(), sinks_, stream.handle());
  call_.sinks = contiguous_view(device_sinks_.data(), DataType::fp32, {heads});
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
