// FlashMLA's prefills on the GPU against attention in fp64 on the host: dense K and V under a
// block-sparse layout, and a paged cache that the call writes first.
#include "attnjit/flash_mla_prefill.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "gpu_runtime.hpp"
#include "host_attention.hpp"

namespace attnjit {
namespace {

constexpr int batch = 2;
constexpr int seqlen = 150;
constexpr int head_dim = 64;
constexpr int block_size = 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

using Elements = std::vector<std::uint16_t>;

// Element of [batch, heads, tokens, head_dim].
double at(const Elements& elements, int heads, int tokens, int b, int head, int token, int column) {
  const int row = (b * heads + head) * tokens + token;
  return from_bf16(elements[static_cast<std::size_t>(row * head_dim + column)]);
}

struct Tensors {
  explicit Tensors(int q_heads, int kv_heads, int keys)
      : num_q_heads(q_heads), num_kv_heads(kv_heads), num_keys(keys) {}

  int num_q_heads;
  int num_kv_heads;
  int num_keys;
  Elements q = random_bf16(static_cast<std::size_t>(batch * num_q_heads * seqlen * head_dim), 1);
  Elements k = random_bf16(static_cast<std::size_t>(batch * num_kv_heads * num_keys * head_dim), 2);
  Elements v = random_bf16(static_cast<std::size_t>(batch * num_kv_heads * num_keys * head_dim), 3);
};

HostAttention host_attention(const Tensors& tensors) {
  HostAttention attention;
  attention.batch = batch;
  attention.num_q_heads = tensors.num_q_heads;
  attention.num_kv_heads = tensors.num_kv_heads;
  attention.seqlen_q = seqlen;
  attention.head_dim_qk = attention.head_dim_v = head_dim;
  attention.softmax_scale = 1 / std::sqrt(static_cast<double>(head_dim));
  attention.seq_lens.assign(batch, tensors.num_keys);
  attention.q = [&tensors](int b, int head, int query, int column) {
    return at(tensors.q, tensors.num_q_heads, seqlen, b, head, query, column);
  };
  attention.k = [&tensors](int b, int head, int token, int column) {
    return at(tensors.k, tensors.num_kv_heads, tensors.num_keys, b, head, token, column);
  };
  attention.v = [&tensors](int b, int head, int token, int column) {
    return at(tensors.v, tensors.num_kv_heads, tensors.num_keys, b, head, token, column);
  };
  return attention;
}

// `out` is [batch, heads, seqlen, head_dim], the reference [batch, seqlen, heads, head_dim].
double cosine_distance(const Elements& out, const HostResult& reference, int heads) {
  double dot = 0;
  double squares = 0;
  std::size_t i = 0;
  for (int b = 0; b < batch; ++b) {
    for (int query = 0; query < seqlen; ++query) {
      for (int head = 0; head < heads; ++head) {
        for (int column = 0; column < head_dim; ++column, ++i) {
          const double value = at(out, heads, seqlen, b, head, query, column);
          dot += value * reference.out[i];
          squares += value * value + reference.out[i] * reference.out[i];
        }
      }
    }
  }
  return 1 - 2 * dot / squares;  // NaN if a value is
}

// Every kv head looks at blocks of its own.
bool looks_at(int head, int query_block, int key_block) {
  return (query_block + 2 * key_block + head) % 3 != 0;
}

struct CompressedRows {
  std::vector<int> rows;
  std::vector<int> columns;
};

CompressedRows compress_layout(int heads, int blocks) {
  CompressedRows layout;
  for (int head = 0; head < heads; ++head) {
    for (int i = 0; i < blocks; ++i) {
      layout.rows.push_back(static_cast<int>(layout.columns.size()));
      for (int j = 0; j < blocks; ++j) {
        if (looks_at(head, i, j)) {
          layout.columns.push_back(j);
        }
      }
    }
    layout.rows.push_back(static_cast<int>(layout.columns.size()));
  }
  return layout;
}

TEST_CASE("flash_mla_prefill looks at the blocks of its layout, up to the diagonal") {
  constexpr int q_heads = 4;
  constexpr int kv_heads = 2;
  const Tensors tensors(q_heads, kv_heads, seqlen);
  constexpr int blocks = (seqlen + block_size - 1) / block_size;
  std::vector<unsigned char> layout;
  for (int head = 0; head < kv_heads; ++head) {
    for (int i = 0; i < blocks * blocks; ++i) {
      layout.push_back(looks_at(head, i / blocks, i % blocks) ? 1 : 0);
    }
  }
  const DeviceStream stream(0);
  const auto q = make_device_buffer<std::uint16_t>(0, tensors.q, stream.handle());
  const auto k = make_device_buffer<std::uint16_t>(0, tensors.k, stream.handle());
  const auto v = make_device_buffer<std::uint16_t>(0, tensors.v, stream.handle());
  const auto sparse = make_device_buffer<unsigned char>(0, layout, stream.handle());
  DeviceBuffer out(0, tensors.q.size() * 2);
  out.fill(0xff, stream.handle());
  const auto view = [](const DeviceBuffer& buffer, int heads) {
    return contiguous_view(buffer.data(), DataType::bf16, {batch, heads, seqlen, head_dim});
  };
  FlashMlaPrefillCall call;
  call.q = view(q, q_heads);
  call.k = view(k, kv_heads);
  call.v = view(v, kv_heads);
  call.sparse_layout =
      contiguous_view(sparse.data(), DataType::uint8, {1, kv_heads, blocks, blocks});
  call.out = view(out, q_heads);
  const AttentionDescriptor descriptor = flash_mla_prefill_descriptor({.num_q_heads = q_heads,
                                                                       .num_kv_heads = kv_heads,
                                                                       .head_dim = head_dim,
                                                                       .sparsity_block = 64});
  flash_mla_prefill(*gpu_runtime().prepare_prefill(descriptor, 0), call, stream.handle());
  HostAttention attention = host_attention(tensors);
  attention.mask = [](int, int head, int query, int token) {
    return looks_at(head / 2, query / block_size, token / block_size) ? 0.0 : -infinity;
  };
  const auto result = download_values<std::uint16_t>(out, tensors.q.size(), stream.handle());
  CHECK(cosine_distance(result, compute(attention), q_heads) < 5e-6);
  // The same in compressed rows, equal to the bit.
  const CompressedRows compressed = compress_layout(kv_heads, blocks);
  const auto device_rows = make_device_buffer<int>(0, compressed.rows, stream.handle());
  const auto device_columns = make_device_buffer<int>(0, compressed.columns, stream.handle());
  call.sparse_layout =
      contiguous_view(device_rows.data(), DataType::int32, {1, kv_heads, blocks + 1});
  call.sparse_columns = contiguous_view(device_columns.data(), DataType::int32,
                                        {static_cast<std::int64_t>(compressed.columns.size())});
  out.fill(0xff, stream.handle());
  flash_mla_prefill(*gpu_runtime().prepare_prefill(descriptor, 0), call, stream.handle());
  CHECK(download_values<std::uint16_t>(out, tensors.q.size(), stream.handle()) == result);
  attention.mask = nullptr;
  CHECK_FALSE(cosine_distance(result, compute(attention), q_heads) < 5e-6);
}

// Tokens 0 to num_keys - seqlen - 1 are in the cache before, the others come with the call.
Elements cached_prefix(const Elements& keys, int heads, int num_keys, int num_blocks,
                       const std::vector<int>& table) {
  Elements cache(static_cast<std::size_t>(batch * heads * num_blocks * block_size * head_dim),
                 0xffff);
  for (int b = 0; b < batch; ++b) {
    for (int head = 0; head < heads; ++head) {
      for (int token = 0; token < num_keys - seqlen; ++token) {
        const int block = table[static_cast<std::size_t>(b * num_blocks + token / block_size)];
        const int row = ((b * heads + head) * num_blocks + block) * block_size + token % block_size;
        const int source = (b * heads + head) * num_keys + token;
        std::copy_n(keys.begin() + source * head_dim, head_dim, cache.begin() + row * head_dim);
      }
    }
  }
  return cache;
}

// The tokens that come with the call, [batch, heads, seqlen, head_dim].
Elements new_tokens(const Elements& keys, int heads, int num_keys) {
  Elements tokens;
  for (int row = 0; row < batch * heads; ++row) {
    const auto first = keys.begin() + (row * num_keys + num_keys - seqlen) * head_dim;
    tokens.insert(tokens.end(), first, first + seqlen * head_dim);
  }
  return tokens;
}

void check_mha(int num_keys) {
  constexpr int heads = 3;
  constexpr int num_blocks = 5;
  const Tensors tensors(heads, heads, num_keys);
  std::vector<int> table;
  for (int i = 0; i < batch * num_blocks; ++i) {
    const bool is_used = i % num_blocks * block_size < num_keys;
    table.push_back(is_used ? (i * 2 + i / num_blocks) % num_blocks : 2147480000);
  }
  const DeviceStream stream(0);
  std::vector<DeviceBuffer> buffers;
  const auto upload = [&](const Elements& elements) {
    buffers.push_back(make_device_buffer<std::uint16_t>(0, elements, stream.handle()));
    return buffers.back().data();
  };
  const auto heads_view = [](void* data) {
    return contiguous_view(data, DataType::bf16, {batch, heads, seqlen, head_dim});
  };
  const auto cache_view = [](void* data) {
    return contiguous_view(data, DataType::bf16, {batch, heads, num_blocks, block_size, head_dim});
  };
  const auto lens = make_device_buffer<int>(0, std::vector<int>(batch, num_keys), stream.handle());
  const auto block_table = make_device_buffer<int>(0, table, stream.handle());
  DeviceBuffer out(0, tensors.q.size() * 2);
  out.fill(0xff, stream.handle());
  MhaKvCacheCall call;
  call.q = heads_view(upload(tensors.q));
  call.k_cache = cache_view(upload(cached_prefix(tensors.k, heads, num_keys, num_blocks, table)));
  call.v_cache = cache_view(upload(cached_prefix(tensors.v, heads, num_keys, num_blocks, table)));
  call.k_new = heads_view(upload(new_tokens(tensors.k, heads, num_keys)));
  call.v_new = heads_view(upload(new_tokens(tensors.v, heads, num_keys)));
  call.block_table = contiguous_view(block_table.data(), DataType::int32, {batch, num_blocks});
  call.seq_lens = contiguous_view(lens.data(), DataType::int32, {batch});
  call.out = heads_view(out.data());
  mha_fwd_kvcache(prepare_mha_kvcache(gpu_runtime(), {.num_heads = heads, .head_dim = head_dim}, 0),
                  call, stream.handle());
  const auto result = download_values<std::uint16_t>(out, tensors.q.size(), stream.handle());
  CHECK(cosine_distance(result, compute(host_attention(tensors)), heads) < 5e-6);
}

TEST_CASE("mha_fwd_kvcache writes a prompt's keys into the cache and attends to them") {
  check_mha(seqlen);
}

TEST_CASE("mha_fwd_kvcache attends to what was cached before, too") {
  check_mha(seqlen + 77);
}

}  // namespace
}  // namespace attnjit
