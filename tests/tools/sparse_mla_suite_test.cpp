// The token-sparse suite of `attnjit check`: its cases are legal and meet what the kernel has, and
// the bytes of its pools are what the device's own decoding makes of them. What kernels make of the
// cases is the GPU's to say.
#include "sparse_mla_suite.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/sparse_mla.hpp"
#include "catch.hpp"
#include "interface/sparse_mla_arguments.h"
#include "sparse_mla_arguments.hpp"
#include "sparse_mla_contents.hpp"

namespace attnjit::check {
namespace {

// A case's pools and lists on the host.
struct Contents {
  IndexLists lists;
  std::vector<std::vector<int>> named;
  TokenPool pool;
};

Contents contents_of(const SparseMlaCase& sparse_case, const TokenPoolCase& pool) {
  Contents contents;
  contents.lists = make_index_lists(sparse_case, pool, sparse_case.seed);
  contents.named = named_tokens(sparse_case, pool, contents.lists);
  contents.pool = make_token_pool(sparse_case, pool, contents.named, sparse_case.seed + 1, 0xff);
  return contents;
}

// The call over tensors that are not there.
SparseMlaCall fake_call(const SparseMlaCase& sparse_case, const TensorView& kv,
                        const TensorView& extra_kv) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  const bool is_decode = descriptor.operation == Operation::sparse_mla_decode;
  void* place = reinterpret_cast<void*>(std::uintptr_t{0x1000});
  const auto view = [&](DataType dtype, std::initializer_list<std::int64_t> decode,
                        std::initializer_list<std::int64_t> prefill) {
    return contiguous_view(place, dtype, is_decode ? decode : prefill);
  };
  const std::int64_t batch = sparse_case.batch;
  const std::int64_t queries = sparse_case.seqlen_q;
  const std::int64_t heads = descriptor.num_q_heads;
  SparseMlaCall call;
  call.q = view(descriptor.dtype_q, {batch, queries, heads, descriptor.head_dim_qk},
                {batch, heads, descriptor.head_dim_qk});
  call.out = view(descriptor.dtype_out, {batch, queries, heads, descriptor.head_dim_v},
                  {batch, heads, descriptor.head_dim_v});
  call.lse = view(DataType::fp32, {batch, heads, queries}, {batch, heads});
  call.kv = kv;
  call.kv.data = place;
  call.indices = view(DataType::int32, {batch, queries, sparse_case.pool.topk},
                      {batch, 1, sparse_case.pool.topk});
  if (sparse_case.extra_pool.topk > 0) {
    call.extra_kv = extra_kv;
    call.extra_kv.data = place;
    call.extra_indices = view(DataType::int32, {batch, queries, sparse_case.extra_pool.topk}, {});
  }
  if (descriptor.has_sinks) {
    call.sinks = contiguous_view(place, DataType::fp32, {heads});
  }
  return call;
}

TEST_CASE("every case of the token-sparse suite is legal, and so is its call") {
  for (const SparseMlaSuiteCase& suite_case : sparse_mla_suite()) {
    SparseMlaCase sparse_case = suite_case.sparse_case;
    sparse_case.batch = std::min(sparse_case.batch, 2);
    sparse_case.pool.pattern = sparse_case.extra_pool.pattern = IndexPattern::nothing;
    INFO(suite_case.group << ": " << describe(suite_case.sparse_case));
    CHECK_NOTHROW(validate(sparse_case.descriptor));
    const TensorView kv = contents_of(sparse_case, sparse_case.pool).pool.view;
    const TensorView extra_kv = sparse_case.extra_pool.topk > 0
                                    ? contents_of(sparse_case, sparse_case.extra_pool).pool.view
                                    : TensorView{};
    CHECK_NOTHROW(
        check_sparse_mla_call(sparse_case.descriptor, fake_call(sparse_case, kv, extra_kv)));
  }
}

TEST_CASE("few kernels serve the token-sparse suite, which has every pattern, length and sink") {
  std::set<IndexPattern> patterns;
  std::set<LengthPattern> lengths;
  std::set<SinkSize> sinks;
  std::set<std::string> descriptors;
  for (const SparseMlaSuiteCase& suite_case : sparse_mla_suite()) {
    const SparseMlaCase& sparse_case = suite_case.sparse_case;
    patterns.insert(sparse_case.pool.pattern);
    lengths.insert(sparse_case.pool.lengths);
    if (sparse_case.descriptor.has_sinks) {
      sinks.insert(sparse_case.sinks);
    }
    descriptors.insert(to_json(sparse_case.descriptor));
  }
  CHECK(patterns.size() == 5);
  CHECK(lengths.size() == 4);
  CHECK(sinks.size() == 4);
  CHECK(descriptors.size() <= 170);
}

SparseMlaCase example_case(KvEncoding encoding, bool has_page_gaps) {
  SparseMlaCase sparse_case;
  sparse_case.descriptor =
      sparse_mla_decode_descriptor({.num_q_heads = 4,
                                    .head_dim_qk = encoding == KvEncoding::fp8_584 ? 512 : 576,
                                    .page_size = 5,
                                    .kv_encoding = encoding});
  sparse_case.batch = 3;
  sparse_case.seqlen_q = 2;
  sparse_case.pool = {.topk = 40,
                      .num_tokens = 133,
                      .page_size = 5,
                      .pattern = IndexPattern::mixed,
                      .lengths = LengthPattern::partial};
  sparse_case.has_page_gaps = has_page_gaps;
  return sparse_case;
}

float bf16_value(const unsigned char* place) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, place, sizeof(bits));
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Column `column` of token `token`, read as the layout's description has it: row or page by page.
double column_value(const SparseMlaCase& sparse_case, const TokenPool& pool, int token,
                    int column) {
  const kernel_interface::SparseMlaArguments arguments = make_sparse_mla_arguments(
      sparse_case.descriptor, fake_call(sparse_case, pool.view, TensorView{}));
  const unsigned char* row = pool.bytes.data() + token_offset(arguments.pools[0], token);
  const auto e4m3 = [&](int place) {
    const unsigned code = row[place];
    const int exponent = static_cast<int>(code >> 3 & 15U);
    const int mantissa = static_cast<int>(code & 7U) + (exponent > 0 ? 8 : 0);
    return std::ldexp(code < 128 ? mantissa : -mantissa, std::max(exponent, 1) - 10);
  };
  switch (sparse_case.descriptor.kv_encoding) {
    case KvEncoding::plain:
      return bf16_value(row + std::ptrdiff_t{2} * column);
    case KvEncoding::fp8_656: {
      float scale = 0;
      std::memcpy(&scale, row + 512 + std::ptrdiff_t{4} * (column / 128), sizeof(scale));
      return column < 512 ? e4m3(column) * scale
                          : bf16_value(row + 528 + std::ptrdiff_t{2} * (column - 512));
    }
    case KvEncoding::fp8_584: {
      const unsigned char* scales =
          pool.bytes.data() + scales_offset(arguments.pools[0], token, 576, 8);
      return column < 448 ? std::ldexp(e4m3(column), scales[column / 64] - 127)
                          : bf16_value(row + 448 + std::ptrdiff_t{2} * (column - 448));
    }
  }
  return 0;
}

TEST_CASE("named tokens lie where the kernel looks for them, and stand for their values") {
  for (const KvEncoding encoding : {KvEncoding::plain, KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    for (const bool has_page_gaps : {false, true}) {
      const SparseMlaCase sparse_case = example_case(encoding, has_page_gaps);
      const Contents contents = contents_of(sparse_case, sparse_case.pool);
      const auto columns = static_cast<std::size_t>(sparse_case.descriptor.head_dim_qk);
      int errors = 0;
      int num_named = 0;
      for (int token = 0; token < static_cast<int>(contents.pool.rows.size()); ++token) {
        const int row = contents.pool.rows[static_cast<std::size_t>(token)];
        num_named += row >= 0 ? 1 : 0;
        for (std::size_t column = 0; column < columns && row >= 0; ++column) {
          const double value =
              contents.pool.values[static_cast<std::size_t>(row) * columns + column];
          const double read =
              column_value(sparse_case, contents.pool, token, static_cast<int>(column));
          errors += std::abs(value - read) <= std::abs(read) * 0x1p-8 ? 0 : 1;
        }
      }
      CHECK(errors == 0);
      CHECK(num_named > 5);
      CHECK(num_named < 135);
    }
  }
}

TEST_CASE("lists name tokens up to their lengths, and what names none is left out") {
  const SparseMlaCase sparse_case = example_case(KvEncoding::plain, false);
  const Contents contents = contents_of(sparse_case, sparse_case.pool);
  REQUIRE(contents.lists.lengths.size() == 3);
  bool has_invalid = false;
  for (std::size_t query = 0; query < 6; ++query) {
    const auto length = static_cast<std::size_t>(contents.lists.lengths[query / 2]);
    std::vector<int> expected;
    for (std::size_t entry = 0; entry < length; ++entry) {
      const int index = contents.lists.indices[query * 40 + entry];
      const bool is_valid = index >= 0 && index < 135;  // whole pages
      has_invalid = has_invalid || !is_valid;
      if (is_valid) {
        expected.push_back(index);
      }
    }
    CHECK(contents.named[query] == expected);
  }
  CHECK(has_invalid);
}

TEST_CASE("a step of a model has the descriptor's topk, or 2048") {
  AttentionDescriptor descriptor = sparse_mla_decode_descriptor({.num_q_heads = 16});
  CHECK(sparse_mla_step(descriptor, 6).sparse_case.pool.topk == 2048);
  descriptor.topk = 512;
  descriptor.max_seqlen_q = 2;
  const SparseMlaCase step = sparse_mla_step(descriptor, 6).sparse_case;
  CHECK(step.pool.topk == 512);
  CHECK(step.batch == 6);
  CHECK(step.seqlen_q == 2);
}

}  // namespace
}  // namespace attnjit::check
