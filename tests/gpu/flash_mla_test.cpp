// FlashMLA's interface on the GPU against attention in fp64 on the host: per-request caches, head
// groups, causal and explicit masks, V separate and a prefix of K.
#include "attnjit/flash_mla.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"

namespace attnjit {
namespace {

constexpr int batch = 3;
constexpr int num_q_heads = 8;
constexpr int num_kv_heads = 4;
constexpr int num_blocks = 4;
constexpr int block_size = 64;

struct Example {
  int seqlen_q = 1;
  int head_dim = 128;
  int head_dim_v = 128;
  ValueSource value_source = ValueSource::separate;
  MaskKind mask = MaskKind::causal;
  std::vector<int> seq_lens = {200, 0, 130};

  std::size_t q_count() const {
    return static_cast<std::size_t>(batch * num_q_heads * seqlen_q * head_dim);
  }
  std::size_t out_count() const {
    return static_cast<std::size_t>(batch * num_q_heads * seqlen_q * head_dim_v);
  }
  std::size_t cache_count(int columns) const {
    return static_cast<std::size_t>(batch * num_kv_heads * num_blocks * block_size * columns);
  }
};

// Block i of request b lies at this place within the request's blocks.
int physical_block(int b, int i) {
  return (i * 3 + b + 1) % num_blocks;
}

std::size_t cache_index(int b, int head, int token, int column, int columns) {
  const int block = physical_block(b, token / block_size);
  return static_cast<std::size_t>(
      (((b * num_kv_heads + head) * num_blocks + block) * block_size + token % block_size) *
          columns +
      column);
}

// A key is hidden where this is 0.
unsigned char mask_value(int b, int token) {
  return (token + b) % 3 != 0 ? 1 : 0;
}

struct Tensors {
  explicit Tensors(const Example& example)
      : q(random_bf16(example.q_count(), 1)),
        k(random_bf16(example.cache_count(example.head_dim), 2)),
        v(random_bf16(example.cache_count(example.head_dim_v), 3)) {}

  std::vector<std::uint16_t> q, k, v;
};

HostResult expected(const Example& example, const Tensors& tensors) {
  HostAttention attention;
  attention.batch = batch;
  attention.num_q_heads = num_q_heads;
  attention.num_kv_heads = num_kv_heads;
  attention.seqlen_q = example.seqlen_q;
  attention.head_dim_qk = example.head_dim;
  attention.head_dim_v = example.head_dim_v;
  attention.softmax_scale = 1 / std::sqrt(static_cast<double>(example.head_dim));
  attention.is_causal = example.mask == MaskKind::causal;
  attention.seq_lens = example.seq_lens;
  attention.q = [&](int b, int head, int query, int column) {
    const int row = (b * num_q_heads + head) * example.seqlen_q + query;
    return from_bf16(tensors.q[static_cast<std::size_t>(row * example.head_dim + column)]);
  };
  attention.k = [&](int b, int head, int token, int column) {
    return from_bf16(tensors.k[cache_index(b, head, token, column, example.head_dim)]);
  };
  attention.v =
      example.value_source == ValueSource::prefix_of_k
          ? attention.k
          : [&](int b, int head, int token, int column) {
              return from_bf16(tensors.v[cache_index(b, head, token, column, example.head_dim_v)]);
            };
  if (example.mask == MaskKind::materialized_bool) {
    attention.mask = [](int b, int, int, int token) {
      return mask_value(b, token) != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
    };
  }
  return compute(attention);
}

// The same as [B, Hq, S, D] bf16 bits, from the GPU.
std::vector<std::uint16_t> run_on_gpu(const Example& example, const Tensors& tensors) {
  const DeviceStream stream(0);
  CUstream_st* handle = stream.handle();
  std::vector<int> table;
  std::vector<unsigned char> mask;
  for (int b = 0; b < batch; ++b) {
    for (int i = 0; i < num_blocks; ++i)
      table.push_back(physical_block(b, i));
    for (int token = 0; token < 256; ++token)
      mask.push_back(mask_value(b, token));
  }
  const DeviceBuffer q = make_device_buffer<std::uint16_t>(0, tensors.q, handle);
  const DeviceBuffer k = make_device_buffer<std::uint16_t>(0, tensors.k, handle);
  const DeviceBuffer v = make_device_buffer<std::uint16_t>(0, tensors.v, handle);
  const DeviceBuffer block_table = make_device_buffer<int>(0, table, handle);
  const DeviceBuffer seq_lens = make_device_buffer<int>(0, example.seq_lens, handle);
  const DeviceBuffer device_mask = make_device_buffer<unsigned char>(0, mask, handle);
  DeviceBuffer out(0, example.out_count() * 2);
  out.fill(0xff, handle);

  FlashMlaCall call;
  call.q = contiguous_view(q.data(), DataType::bf16,
                           {batch, num_q_heads, example.seqlen_q, example.head_dim});
  call.k_cache = contiguous_view(k.data(), DataType::bf16,
                                 {batch, num_kv_heads, num_blocks, block_size, example.head_dim});
  if (example.value_source == ValueSource::separate) {
    call.v_cache =
        contiguous_view(v.data(), DataType::bf16,
                        {batch, num_kv_heads, num_blocks, block_size, example.head_dim_v});
  }
  call.block_table = contiguous_view(block_table.data(), DataType::int32, {batch, num_blocks});
  call.seq_lens = contiguous_view(seq_lens.data(), DataType::int32, {batch});
  if (example.mask != MaskKind::causal) {
    call.mask = contiguous_view(device_mask.data(), DataType::uint8, {batch, 1, 1, 256});
  }
  call.out = contiguous_view(out.data(), DataType::bf16,
                             {batch, num_q_heads, example.seqlen_q, example.head_dim_v});

  MlaMetadataOptions options;
  options.head_dim_v = example.head_dim_v;
  options.value_source = example.value_source;
  options.mask = example.mask;
  const MlaMetadata metadata = get_mla_metadata(
      std::vector<std::int64_t>{batch, num_q_heads, example.seqlen_q, example.head_dim},
      std::vector<std::int64_t>{batch, num_kv_heads, num_blocks, block_size, example.head_dim},
      call.block_table, example.seq_lens, options);
  const DecodePlan plan = make_mla_plan(gpu_runtime(), metadata, 0, handle);
  const DeviceBuffer workspace(0, static_cast<std::size_t>(plan.workspace_bytes()));
  flash_mla_with_kvcache(call, metadata, plan, workspace.data(), plan.workspace_bytes(), handle);
  return download_values<std::uint16_t>(out, example.out_count(), handle);
}

void compare(const Example& example) {
  const Tensors tensors(example);
  const HostResult reference = expected(example, tensors);
  const std::vector<std::uint16_t> out = run_on_gpu(example, tensors);
  double dot = 0;
  double squares = 0;
  std::size_t i = 0;
  for (int b = 0; b < batch; ++b) {
    for (int query = 0; query < example.seqlen_q; ++query) {
      for (int head = 0; head < num_q_heads; ++head) {
        const int row = (b * num_q_heads + head) * example.seqlen_q + query;
        for (int column = 0; column < example.head_dim_v; ++column, ++i) {
          const double value =
              from_bf16(out[static_cast<std::size_t>(row * example.head_dim_v + column)]);
          dot += value * reference.out[i];
          squares += value * value + reference.out[i] * reference.out[i];
        }
      }
    }
  }
  CHECK(1 - 2 * dot / squares < 5e-6);  // NaN fails
}

TEST_CASE("decode over per-request caches maps q heads to kv heads by groups") {
  compare({});
}

TEST_CASE("several query tokens are causal from the bottom right") {
  Example example;
  example.seqlen_q = 3;
  compare(example);
}

TEST_CASE("an explicit mask replaces the causal one") {
  Example example;
  example.seqlen_q = 2;
  example.mask = MaskKind::materialized_bool;
  compare(example);
}

TEST_CASE("V may have another head dim, or be a prefix of K") {
  Example example;
  example.head_dim = 192;
  compare(example);
  example.value_source = ValueSource::prefix_of_k;
  compare(example);
}

}  // namespace
}  // namespace attnjit
