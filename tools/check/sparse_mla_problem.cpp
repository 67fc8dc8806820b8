#include "sparse_mla_problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "attnjit/kernel_launch.hpp"
#include "random_tokens.hpp"
#include "sparse_mla_reference_arguments.h"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

constexpr std::int64_t row_padding = 8;       // elements between the rows of q, and of out
constexpr std::int64_t guard_rows = 64;       // behind the last row of out
constexpr std::int64_t guard_numbers = 1024;  // behind lse and max_logits

bool is_decode(const SparseMlaCase& sparse_case) {
  return sparse_case.descriptor.operation == Operation::sparse_mla_decode;
}

// [batch, seqlen_q, num_q_heads, columns] of a decode, [query tokens, num_q_heads, columns] of a
// prefill, with padding between rows.
TensorView padded_rows(const SparseMlaCase& sparse_case, DataType dtype, std::int64_t columns) {
  const std::int64_t heads = sparse_case.descriptor.num_q_heads;
  const std::int64_t pitch = columns + row_padding;
  TensorView view =
      is_decode(sparse_case)
          ? contiguous_view(nullptr, dtype, {sparse_case.batch, sparse_case.seqlen_q, heads, pitch})
          : contiguous_view(nullptr, dtype, {sparse_case.batch, heads, pitch});
  view.shape.at(static_cast<std::size_t>(view.rank) - 1) = columns;
  return view;
}

std::int64_t count_rows(const SparseMlaCase& sparse_case) {
  return std::int64_t{sparse_case.num_query_tokens()} * sparse_case.descriptor.num_q_heads;
}

// One number per row.
TensorView row_numbers(const SparseMlaCase& sparse_case) {
  const std::int64_t heads = sparse_case.descriptor.num_q_heads;
  return is_decode(sparse_case)
             ? contiguous_view(nullptr, DataType::fp32,
                               {sparse_case.batch, heads, sparse_case.seqlen_q})
             : contiguous_view(nullptr, DataType::fp32, {sparse_case.batch, heads});
}

bool is_poison(const unsigned char* begin, const unsigned char* end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == 0xff; });
}

}  // namespace

SparseMlaProblem::SparseMlaProblem(const CheckKernels& kernels, SparseMlaCase sparse_case,
                                   const DeviceStream& stream, unsigned char unnamed)
    : kernels_(kernels), case_(std::move(sparse_case)) {
  token_rows_.resize(static_cast<std::size_t>(case_.num_query_tokens()));
  make_queries(stream);
  make_pool(case_.pool, case_.seed + 1, unnamed, pool_, call_.kv, call_.indices, call_.topk_length,
            stream);
  if (case_.extra_pool.topk > 0) {
    make_pool(case_.extra_pool, case_.seed + 2, unnamed, extra_pool_, call_.extra_kv,
              call_.extra_indices, call_.extra_topk_length, stream);
  }
  if (case_.descriptor.has_sinks) {
    const std::vector<float> sinks =
        draw_sinks(case_.descriptor.num_q_heads, case_.sinks, case_.seed + 3);
    sinks_ = make_device_buffer<float>(stream.device(), sinks, stream.handle());
    call_.sinks = contiguous_view(sinks_.data(), DataType::fp32, {case_.descriptor.num_q_heads});
  }
  make_outputs(stream);
  call_.softmax_scale = softmax_scale_of(case_);
}

void SparseMlaProblem::make_queries(const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  const std::int64_t columns = descriptor.head_dim_qk;
  const auto rows = static_cast<std::size_t>(count_rows(case_));
  const auto pitch = static_cast<std::size_t>(columns + row_padding);
  const std::vector<std::uint16_t> elements = random_elements(
      rows * static_cast<std::size_t>(columns), descriptor.dtype_q, 1.0, case_.seed);
  std::vector<std::uint16_t> padded(rows * pitch, 0xffff);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(row) * columns, columns,
                padded.begin() + static_cast<std::ptrdiff_t>(row * pitch));
  }
  q_ = make_device_buffer<std::uint16_t>(stream.device(), padded, stream.handle());
  call_.q = padded_rows(case_, descriptor.dtype_q, columns);
  call_.q.data = q_.data();
}

void SparseMlaProblem::make_pool(const TokenPoolCase& pool, std::uint64_t seed,
                                 unsigned char unnamed, Pool& made, TensorView& kv,
                                 TensorView& indices, TensorView& lengths,
                                 const DeviceStream& stream) {
  const IndexLists lists = make_index_lists(case_, pool, seed * 3);
  const auto named = named_tokens(case_, pool, lists);
  const TokenPool tokens = make_token_pool(case_, pool, named, seed * 3 + 1, unnamed);
  made.bytes = make_device_buffer<unsigned char>(stream.device(), tokens.bytes, stream.handle());
  kv = tokens.view;
  kv.data = made.bytes.data();
  made.indices = make_device_buffer<int>(stream.device(), lists.indices, stream.handle());
  indices = is_decode(case_) ? contiguous_view(made.indices.data(), DataType::int32,
                                               {case_.batch, case_.seqlen_q, pool.topk})
                             : contiguous_view(made.indices.data(), DataType::int32,
                                               {case_.batch, 1, pool.topk});
  if (!lists.lengths.empty()) {
    made.lengths = make_device_buffer<int>(stream.device(), lists.lengths, stream.handle());
    lengths = contiguous_view(made.lengths.data(), DataType::int32, {case_.batch});
  }
  const int first_row = static_cast<int>(token_values_.size() /
                                         static_cast<std::size_t>(case_.descriptor.head_dim_qk));
  token_values_.insert(token_values_.end(), tokens.values.begin(), tokens.values.end());
  for (std::size_t query = 0; query < named.size(); ++query) {
    for (const int token : named[query]) {
      token_rows_[query].push_back(first_row + tokens.rows[static_cast<std::size_t>(token)]);
    }
  }
}

void SparseMlaProblem::make_outputs(const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  const std::int64_t rows = count_rows(case_);
  const std::int64_t pitch_bytes = (descriptor.head_dim_v + row_padding) * 2;
  call_.out = padded_rows(case_, descriptor.dtype_out, descriptor.head_dim_v);
  out_ = DeviceBuffer(stream.device(), static_cast<std::size_t>((rows + guard_rows) * pitch_bytes));
  call_.out.data = out_.data();
  const auto number_bytes = static_cast<std::size_t>((rows + guard_numbers) * 4);
  lse_ = DeviceBuffer(stream.device(), number_bytes);
  max_logits_ = DeviceBuffer(stream.device(), number_bytes);
  if (descriptor.returns_lse) {
    call_.lse = row_numbers(case_);
    call_.lse.data = lse_.data();
  }
  if (case_.wants_max_logits) {
    call_.max_logits = row_numbers(case_);
    call_.max_logits.data = max_logits_.data();
  }
}

void SparseMlaProblem::poison_outputs(const DeviceStream& stream) {
  for (DeviceBuffer* buffer : {&out_, &lse_, &max_logits_}) {
    buffer->fill(0xff, stream.handle());
  }
}

std::vector<unsigned char> SparseMlaProblem::download_outputs(const DeviceStream& stream) const {
  std::vector<unsigned char> bytes;
  for (const DeviceBuffer* buffer : {&out_, &lse_, &max_logits_}) {
    const auto part = download_values<unsigned char>(*buffer, buffer->bytes(), stream.handle());
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

bool SparseMlaProblem::is_padding_untouched(const std::vector<unsigned char>& outputs) const {
  const auto rows = static_cast<std::size_t>(count_rows(case_));
  const auto row_bytes = static_cast<std::size_t>(case_.descriptor.head_dim_v) * 2;
  const std::size_t pitch_bytes = row_bytes + static_cast<std::size_t>(row_padding) * 2;
  const unsigned char* out = outputs.data();
  bool is_untouched = is_poison(out + rows * pitch_bytes, out + out_.bytes());
  for (std::size_t row = 0; row < rows; ++row) {
    is_untouched = is_untouched &&
                   is_poison(out + row * pitch_bytes + row_bytes, out + (row + 1) * pitch_bytes);
  }
  const unsigned char* lse = out + out_.bytes();
  const unsigned char* max_logits = lse + lse_.bytes();
  return is_untouched && is_poison(lse + rows * 4, max_logits) &&
         is_poison(max_logits + rows * 4, max_logits + max_logits_.bytes());
}

SparseMlaReference SparseMlaProblem::compute_reference(const DeviceStream& stream) const {
  const AttentionDescriptor& descriptor = case_.descriptor;
  std::size_t entries = 1;
  for (const std::vector<int>& rows : token_rows_) {
    entries = std::max(entries, rows.size());
  }
  std::vector<int> lists(token_rows_.size() * entries, -1);
  for (std::size_t query = 0; query < token_rows_.size(); ++query) {
    std::copy(token_rows_[query].begin(), token_rows_[query].end(),
              lists.begin() + static_cast<std::ptrdiff_t>(query * entries));
  }
  std::vector<float> values = token_values_;
  values.push_back(0);  // memory of no bytes there is none
  const DeviceBuffer device_lists =
      make_device_buffer<int>(stream.device(), lists, stream.handle());
  const DeviceBuffer device_values =
      make_device_buffer<float>(stream.device(), values, stream.handle());
  const auto rows = static_cast<std::size_t>(count_rows(case_));
  const DeviceBuffer scores(stream.device(), rows * entries * sizeof(double));
  SparseMlaReference reference;
  reference.out = DeviceBuffer(
      stream.device(), rows * static_cast<std::size_t>(descriptor.head_dim_v) * sizeof(double));
  reference.lse = DeviceBuffer(stream.device(), rows * sizeof(double));
  reference.max_logits = DeviceBuffer(stream.device(), rows * sizeof(double));
  reference.magnitude = DeviceBuffer(stream.device(), rows * sizeof(double));
  SparseMlaReferenceArguments arguments = {};
  arguments.q = call_.q.data;
  arguments.q_strides = query_strides(call_.q);
  if (!is_decode(case_)) {
    arguments.q_strides = {call_.q.strides[0], 0, call_.q.strides[1]};
  }
  arguments.tokens = static_cast<const float*>(device_values.data());
  arguments.rows = static_cast<const int*>(device_lists.data());
  arguments.sinks = static_cast<const float*>(call_.sinks.data);
  arguments.scores = static_cast<double*>(scores.data());
  arguments.out = static_cast<double*>(reference.out.data());
  arguments.lse = static_cast<double*>(reference.lse.data());
  arguments.max_logits = static_cast<double*>(reference.max_logits.data());
  arguments.magnitude = static_cast<double*>(reference.magnitude.data());
  arguments.softmax_scale = call_.softmax_scale;
  arguments.seqlen_q = case_.seqlen_q;
  arguments.num_q_heads = descriptor.num_q_heads;
  arguments.head_dim_qk = descriptor.head_dim_qk;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.entries = static_cast<int>(entries);
  arguments.kind = element_kind(descriptor.dtype_q);
  launch(kernels_.reference_sparse_mla, {static_cast<unsigned>(rows), 1, 1}, stream.handle(),
         &arguments);
  stream.synchronize();  // lists, values and scores go away
  return reference;
}

}  // namespace attnjit::check
