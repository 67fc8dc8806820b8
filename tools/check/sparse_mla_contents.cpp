#include "sparse_mla_contents.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>

#include "element_bits.hpp"

namespace attnjit::check {
namespace {

using Random = std::mt19937_64;

// Near enough to N(0, 1), the same with every standard library: the sum of four uniform draws.
double random_normal(Random& random) {
  const std::uint64_t bits = random();
  double sum = -2.0;
  for (int i = 0; i < 4; ++i) {
    sum += (static_cast<double>(bits >> i * 16 & 0xffff) + 0.5) / 65536.0;
  }
  return sum * std::sqrt(3.0);
}

int below(Random& random, int end) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(end));
}

// Values too small for a normal fp16 number become 0.
std::uint16_t fp16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t rounded = (bits & 0x7fffffffU) + 0xfffU + (bits >> 13 & 1U);
  constexpr std::uint32_t least = 113U << 23;  // 2^-14
  return static_cast<std::uint16_t>(rounded < least ? sign : sign | (rounded - (112U << 23)) >> 13);
}

float fp16_value(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffU;
  const float value =
      magnitude == 0 ? 0.0F : std::bit_cast<float>((magnitude << 13) + (112U << 23));
  return bits >> 15 != 0 ? -value : value;
}

std::uint16_t element_bits(float value, DataType dtype) {
  return dtype == DataType::fp16 ? fp16_bits(value) : bf16_bits(value);
}

float element_value(std::uint16_t bits, DataType dtype) {
  return dtype == DataType::fp16 ? fp16_value(bits)
                                 : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// How a pool's tokens lie, in bytes.
struct PoolLayout {
  std::int64_t page_size = 1;
  std::int64_t num_pages = 0;
  std::int64_t page_stride = 0;
  std::int64_t token_bytes = 0;  // as the view has it
};

PoolLayout lay_out(const SparseMlaCase& sparse_case, const TokenPoolCase& pool) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  PoolLayout layout;
  layout.page_size = descriptor.kv_layout == KvLayout::paged ? pool.page_size : 1;
  layout.num_pages = (pool.num_tokens + layout.page_size - 1) / layout.page_size;
  switch (descriptor.kv_encoding) {
    case KvEncoding::plain:
      layout.token_bytes = std::int64_t{2} * descriptor.head_dim_qk;
      layout.page_stride =
          layout.page_size * layout.token_bytes + (sparse_case.has_page_gaps ? 48 : 0);
      break;
    case KvEncoding::fp8_656:
      layout.token_bytes = 656;
      layout.page_stride = (layout.page_size + (sparse_case.has_page_gaps ? 1 : 0)) * 656;
      break;
    case KvEncoding::fp8_584:  // gaps make each page a multiple of 576
      layout.token_bytes = 584;
      layout.page_stride = layout.page_size * 584;
      if (sparse_case.has_page_gaps) {
        layout.page_stride = (layout.page_stride + 575) / 576 * 576;
      }
      break;
  }
  return layout;
}

// What an index may name: all places of a pool's pages.
int count_places(const SparseMlaCase& sparse_case, const TokenPoolCase& pool) {
  const PoolLayout layout = lay_out(sparse_case, pool);
  return static_cast<int>(layout.num_pages * layout.page_size);
}

// An index that names no token of a pool.
int no_token(Random& random, int num_places) {
  const std::array names = {-1,         -1,     -123456, INT_MIN, num_places, num_places + 1,
                            2147480000, INT_MAX};
  return names.at(random() % names.size());
}

int mixed_index(Random& random, int num_tokens) {
  return random() % 8 == 0 ? no_token(random, num_tokens) : below(random, num_tokens);
}

std::vector<int> shuffled_tokens(Random& random, int num_tokens) {
  std::vector<int> tokens;
  for (int token = 0; token < num_tokens; ++token) {
    tokens.push_back(token);
    std::swap(tokens.back(), tokens[static_cast<std::size_t>(below(random, token + 1))]);
  }
  return tokens;
}

// The list of query token `query`.
void append_list(std::vector<int>& indices, const TokenPoolCase& pool, int num_places, int query,
                 Random& random) {
  const bool is_distinct = pool.pattern == IndexPattern::distinct;
  const std::vector<int> order =
      is_distinct ? shuffled_tokens(random, num_places) : std::vector<int>();
  for (int entry = 0; entry < pool.topk; ++entry) {
    const bool is_empty = pool.pattern == IndexPattern::nothing ||
                          (pool.pattern == IndexPattern::empty_rows && query % 2 == 0);
    if (is_empty || (is_distinct && entry >= num_places)) {
      indices.push_back(no_token(random, num_places));
    } else if (is_distinct) {
      indices.push_back(order[static_cast<std::size_t>(entry)]);
    } else if (pool.pattern == IndexPattern::repeated) {
      indices.push_back(below(random, std::min(3, num_places)));
    } else {
      indices.push_back(mixed_index(random, num_places));
    }
  }
}

std::vector<int> make_lengths(const TokenPoolCase& pool, int batch, Random& random) {
  std::vector<int> lengths;
  for (int b = 0; b < batch && pool.lengths != LengthPattern::all; ++b) {
    const int partial = below(random, pool.topk + 1);
    lengths.push_back(pool.lengths == LengthPattern::given  ? pool.topk + b % 2
                      : pool.lengths == LengthPattern::zero ? 0
                                                            : partial);
  }
  return lengths;
}

int length_of(const IndexLists& lists, const TokenPoolCase& pool, int request) {
  return lists.lengths.empty()
             ? pool.topk
             : std::min(pool.topk, lists.lengths[static_cast<std::size_t>(request)]);
}

TensorView view_of(const SparseMlaCase& sparse_case, const PoolLayout& layout) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  const std::int64_t element_bytes = descriptor.kv_encoding == KvEncoding::plain ? 2 : 1;
  const std::int64_t width = layout.token_bytes / element_bytes;
  const bool is_paged = descriptor.kv_layout == KvLayout::paged;
  TensorView view =
      is_paged ? contiguous_view(nullptr, descriptor.dtype_kv,
                                 {layout.num_pages, layout.page_size, 1, width})
               : contiguous_view(nullptr, descriptor.dtype_kv, {layout.num_pages, 1, width});
  view.strides[0] = layout.page_stride / element_bytes;
  if (is_paged && descriptor.kv_layout_tag == KvLayoutTag::hnd) {
    view = permuted_view(view, {0, 2, 1, 3});
  }
  return view;
}

void put(unsigned char* place, const void* value, std::size_t bytes) {
  std::memcpy(place, value, bytes);
}

void put_elements(unsigned char* place, int count, DataType dtype, double scale, Random& random,
                  std::vector<float>& values) {
  for (int i = 0; i < count; ++i) {
    const std::uint16_t bits =
        element_bits(static_cast<float>(scale * random_normal(random)), dtype);
    put(place + std::ptrdiff_t{2} * i, &bits, sizeof(bits));
    values.push_back(element_value(bits, dtype));
  }
}

// `count` columns of e4m3 codes of about N(0, 64^2).
void put_codes(unsigned char* place, int count, float scale, Random& random,
               const std::vector<unsigned char>& codes, std::vector<float>& values) {
  for (int i = 0; i < count; ++i) {
    place[i] = codes[random() % codes.size()];
    values.push_back(round_to_bf16(e4m3_value(place[i]) * scale));
  }
}

std::vector<unsigned char> draw_codes(Random& random) {
  std::vector<unsigned char> codes;
  for (int i = 0; i < 4096; ++i) {
    codes.push_back(e4m3_code(64 * random_normal(random)));
  }
  return codes;
}

// 512 codes, 4 fp32 scales that are no powers of two, 64 rope columns.
void put_fp8_656(unsigned char* token, double kv_scale, Random& random,
                 const std::vector<unsigned char>& codes, std::vector<float>& values) {
  for (int block = 0; block < 4; ++block) {
    const auto scale = static_cast<float>(kv_scale / 64 * (0.7 + 0.7 * below(random, 1000) / 1000));
    put(token + 512 + std::ptrdiff_t{4} * block, &scale, sizeof(scale));
    put_codes(token + std::ptrdiff_t{128} * block, 128, scale, random, codes, values);
  }
  put_elements(token + 528, 64, DataType::bf16, kv_scale, random, values);
}

// 448 codes and 64 rope columns in the token's row, 7 powers of two among the page's scales.
void put_fp8_584(unsigned char* row, unsigned char* scales, double kv_scale, Random& random,
                 const std::vector<unsigned char>& codes, std::vector<float>& values) {
  const int exponent = std::ilogb(kv_scale / 64);
  for (int block = 0; block < 7; ++block) {
    const int chosen = exponent + below(random, 2);
    scales[block] = static_cast<unsigned char>(chosen + 127);
    put_codes(row + std::ptrdiff_t{64} * block, 64, std::ldexp(1.0F, chosen), random, codes,
              values);
  }
  put_elements(row + 448, 64, DataType::bf16, kv_scale, random, values);
}

void put_token(const SparseMlaCase& sparse_case, const PoolLayout& layout, int token,
               Random& random, const std::vector<unsigned char>& codes, TokenPool& made) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  unsigned char* page = made.bytes.data() + token / layout.page_size * layout.page_stride;
  const std::int64_t place = token % layout.page_size;
  switch (descriptor.kv_encoding) {
    case KvEncoding::plain:
      put_elements(page + place * layout.token_bytes, descriptor.head_dim_qk, descriptor.dtype_kv,
                   sparse_case.kv_scale, random, made.values);
      break;
    case KvEncoding::fp8_656:
      put_fp8_656(page + place * 656, sparse_case.kv_scale, random, codes, made.values);
      break;
    case KvEncoding::fp8_584:
      put_fp8_584(page + place * 576, page + layout.page_size * 576 + place * 8,
                  sparse_case.kv_scale, random, codes, made.values);
      break;
  }
}

}  // namespace

IndexLists make_index_lists(const SparseMlaCase& sparse_case, const TokenPoolCase& pool,
                            std::uint64_t seed) {
  Random random(seed);
  const int num_places = count_places(sparse_case, pool);
  IndexLists lists;
  for (int query = 0; query < sparse_case.num_query_tokens(); ++query) {
    append_list(lists.indices, pool, num_places, query, random);
  }
  lists.lengths = make_lengths(pool, sparse_case.batch, random);
  // Behind a list's length: half of it names no token, half of it tokens that hold NaN, unless
  // another list names them too.
  for (int query = 0; query < sparse_case.num_query_tokens(); ++query) {
    for (int entry = length_of(lists, pool, query / sparse_case.seqlen_q); entry < pool.topk;
         ++entry) {
      lists.indices[static_cast<std::size_t>(query) * static_cast<std::size_t>(pool.topk) +
                    static_cast<std::size_t>(entry)] =
          random() % 2 == 0 ? 2147480000 : below(random, num_places);
    }
  }
  return lists;
}

std::vector<std::vector<int>> named_tokens(const SparseMlaCase& sparse_case,
                                           const TokenPoolCase& pool, const IndexLists& lists) {
  std::vector<std::vector<int>> named(static_cast<std::size_t>(sparse_case.num_query_tokens()));
  const int num_places = count_places(sparse_case, pool);
  for (std::size_t query = 0; query < named.size(); ++query) {
    const auto first = lists.indices.begin() +
                       static_cast<std::ptrdiff_t>(query) * static_cast<std::ptrdiff_t>(pool.topk);
    const int length = length_of(lists, pool, static_cast<int>(query) / sparse_case.seqlen_q);
    std::copy_if(first, first + length, std::back_inserter(named[query]),
                 [&](int index) { return index >= 0 && index < num_places; });
  }
  return named;
}

TokenPool make_token_pool(const SparseMlaCase& sparse_case, const TokenPoolCase& pool,
                          const std::vector<std::vector<int>>& named, std::uint64_t seed,
                          unsigned char unnamed) {
  const PoolLayout layout = lay_out(sparse_case, pool);
  Random random(seed);
  const std::vector<unsigned char> codes = draw_codes(random);
  TokenPool made;
  made.view = view_of(sparse_case, layout);
  made.bytes.assign(static_cast<std::size_t>(layout.num_pages * layout.page_stride), unnamed);
  made.rows.assign(static_cast<std::size_t>(count_places(sparse_case, pool)), -1);
  int num_rows = 0;
  for (const std::vector<int>& tokens : named) {
    for (const int token : tokens) {
      int& row = made.rows[static_cast<std::size_t>(token)];
      if (row < 0) {
        row = num_rows++;
        put_token(sparse_case, layout, token, random, codes, made);
      }
    }
  }
  return made;
}

std::vector<std::uint16_t> random_elements(std::size_t count, DataType dtype, double scale,
                                           std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint16_t> elements;
  elements.reserve(count);
  while (elements.size() < count) {
    elements.push_back(element_bits(static_cast<float>(scale * random_normal(random)), dtype));
  }
  return elements;
}

}  // namespace attnjit::check
