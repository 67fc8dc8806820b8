#include "prefill_problem.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "prefill_tensors.hpp"
#include "random_tokens.hpp"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

constexpr float out_scale = 0.0234F;  // of an fp8 output that has one

int longest(const std::vector<int>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

const int* ints_of(const TensorView& view) {
  return static_cast<const int*>(view.data);
}

}  // namespace

PrefillProblem::PrefillProblem(const CheckKernels& kernels, PrefillCase prefill_case,
                               const DeviceStream& stream, std::uint64_t table_seed)
    : kernels_(kernels), case_(std::move(prefill_case)) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  for (int b = 0; b < case_.batch(); ++b) {
    reachable_.push_back(reachable_keys(case_, b));
  }
  make_small_tensors(stream);
  if (descriptor.kv_layout == KvLayout::paged) {
    make_block_table(stream, table_seed);
  }
  make_queries(stream);
  call_.k = make_keys(k_, scaled_k_, descriptor.head_dim_qk, case_.seed + 1, stream);
  call_.k_scales = scaled_k_.scales;
  if (descriptor.value_source == ValueSource::separate) {
    call_.v = make_keys(v_, scaled_v_, descriptor.head_dim_v, case_.seed + 2, stream);
    call_.v_scales = scaled_v_.scales;
  }
  make_outputs(stream);
  call_.softmax_scale = static_cast<float>(
      case_.softmax_scale.value_or(1.0 / (case_.kv_scale * std::sqrt(descriptor.head_dim_qk))));
  if (descriptor.score_modifier == ScoreModifier::softcap) {
    call_.softcap = static_cast<float>(case_.softcap);
  }
}

void PrefillProblem::make_small_tensors(const DeviceStream& stream) {
  for (const SmallTensor& tensor : check::make_small_tensors(case_)) {
    small_.push_back(
        make_device_buffer<unsigned char>(stream.device(), tensor.bytes, stream.handle()));
    call_.*tensor.place = tensor.view;
    (call_.*tensor.place).data = small_.back().data();
  }
}

void PrefillProblem::make_block_table(const DeviceStream& stream, std::uint64_t table_seed) {
  std::vector<KeyRange> keys;
  for (int b = 0; b < case_.batch(); ++b) {
    // A kernel may look up every page of the sequence from the first that it needs.
    const std::int64_t end = case_.kv_len(b);
    const bool is_reached = reachable_[static_cast<std::size_t>(b)].size() > 0;
    keys.push_back({is_reached ? reachable_[static_cast<std::size_t>(b)].begin : end, end});
  }
  const BlockTable table =
      check::make_block_table(keys, case_.descriptor.page_size, case_.arrangement, table_seed);
  num_pages_ = table.num_pages;
  block_table_ = make_device_buffer<int>(stream.device(), table.ids, stream.handle());
  call_.block_table =
      contiguous_view(block_table_.data(), DataType::int32, {case_.batch(), table.columns});
}

void PrefillProblem::make_queries(const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  call_.q = query_view(case_, descriptor.dtype_q, descriptor.head_dim_qk);
  q_ = poisoned_buffer(stream, span_bytes(call_.q));
  call_.q.data = q_.data();
  const ScaleShape shape = query_scale_shape(case_);
  scaled_q_ =
      make_scaled_tensor(descriptor, shape, call_.q, span_bytes(call_.q), case_.batch(), stream);
  call_.q_scales = scaled_q_.scales;
  const std::vector<int> first_tokens(case_.q_lens.size(), 0);
  const auto first = make_device_buffer<int>(stream.device(), first_tokens, stream.handle());
  const auto ends = make_device_buffer<int>(stream.device(), case_.q_lens, stream.handle());
  const kernel_interface::QueryStrides strides = query_strides(call_.q);
  FillTokensArguments arguments = {};
  arguments.data = q_.data();
  arguments.tokens.offsets = ints_of(call_.q_offsets);
  arguments.first_tokens = static_cast<const int*>(first.data());
  arguments.end_tokens = static_cast<const int*>(ends.data());
  arguments.strides = {
      .batch = strides.batch, .block = 0, .head = strides.head, .row = strides.token};
  arguments.seed = case_.seed;
  arguments.num_heads = descriptor.num_q_heads;
  arguments.head_dim = descriptor.head_dim_qk;
  arguments.max_tokens = std::max(1, longest(case_.q_lens));
  arguments.kind = element_kind(descriptor.dtype_q);
  arguments.scale = 1.0F;
  arguments.fp8 = fill_scales(descriptor, shape, scaled_q_);
  fill_tokens(kernels_, arguments, case_.batch(), stream);
  stream.synchronize();  // the ranges go away
}

TensorView PrefillProblem::make_keys(DeviceBuffer& buffer, ScaledTensor& scaled, int head_dim,
                                     std::uint64_t seed, const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  CacheLayout layout;
  if (descriptor.kv_layout == KvLayout::paged) {
    layout = lay_out_cache(descriptor, case_.arrangement, case_.batch(), num_pages_, head_dim);
  } else {
    layout.view = key_view(case_, head_dim);
    layout.bytes = span_bytes(layout.view);
  }
  buffer = poisoned_buffer(stream, layout.bytes);
  layout.view.data = buffer.data();
  const ScaleShape shape = key_scale_shape(case_);
  scaled = make_scaled_tensor(descriptor, shape, layout.view, layout.bytes, case_.batch(), stream);
  std::vector<int> begins;
  std::vector<int> ends;
  for (const KeyRange& range : reachable_) {
    begins.push_back(static_cast<int>(range.begin));
    ends.push_back(static_cast<int>(range.end));
  }
  const auto first = make_device_buffer<int>(stream.device(), begins, stream.handle());
  const auto end = make_device_buffer<int>(stream.device(), ends, stream.handle());
  FillTokensArguments arguments = {};
  arguments.data = buffer.data();
  arguments.tokens.offsets = ints_of(call_.kv_offsets);
  arguments.first_tokens = static_cast<const int*>(first.data());
  arguments.end_tokens = static_cast<const int*>(end.data());
  arguments.strides = key_strides(descriptor, layout.view);
  arguments.block_table = ints_of(call_.block_table);
  arguments.block_table_stride = call_.block_table.strides[0];
  arguments.seed = seed;
  arguments.num_heads = descriptor.num_kv_heads;
  arguments.head_dim = head_dim;
  arguments.page_size = descriptor.page_size;
  arguments.max_tokens = std::max(1, longest(case_.kv_lens));
  arguments.kind = element_kind(descriptor.dtype_kv);
  arguments.scale = static_cast<float>(case_.kv_scale);
  arguments.fp8 = fill_scales(descriptor, shape, scaled);
  fill_tokens(kernels_, arguments, case_.batch(), stream);
  stream.synchronize();  // the ranges go away
  return layout.view;
}

void PrefillProblem::make_outputs(const DeviceStream& stream) {
  const AttentionDescriptor& descriptor = case_.descriptor;
  call_.out = query_view(case_, descriptor.dtype_out, descriptor.head_dim_v);
  out_ = poisoned_buffer(stream, span_bytes(call_.out));
  call_.out.data = out_.data();
  if (descriptor.scales_out != ScaleGrain::none) {
    out_scale_ =
        make_device_buffer<float>(stream.device(), std::span(&out_scale, 1), stream.handle());
    call_.out_scale = contiguous_view(out_scale_.data(), DataType::fp32, {1});
  }
  if (!descriptor.returns_lse) {
    return;
  }
  const std::int64_t rows = count_query_rows(case_);
  const std::int64_t heads = descriptor.num_q_heads;
  call_.lse = case_.query_layout == QueryLayout::ragged
                  ? contiguous_view(nullptr, DataType::fp32, {heads, rows})
                  : contiguous_view(nullptr, DataType::fp32, {case_.batch(), heads, rows});
  lse_ = poisoned_buffer(stream, span_bytes(call_.lse));
  call_.lse.data = lse_.data();
}

ReferenceCall PrefillProblem::reference_call() const {
  PrefillCall call = call_;
  call.q = reference_view(call_.q, scaled_q_);
  call.k = reference_view(call_.k, scaled_k_);
  call.v = reference_view(call_.v, scaled_v_);
  const bool has_out_scale = case_.descriptor.scales_out != ScaleGrain::none;
  return {.descriptor = case_.descriptor,
          .call = call,
          .batch = case_.batch(),
          .max_queries = longest(case_.q_lens),
          .max_keys = longest(case_.kv_lens),
          .out_scale = has_out_scale ? out_scale : 1.0F};
}

void PrefillProblem::poison_outputs(const DeviceStream& stream) {
  out_.fill(0xff, stream.handle());
  if (lse_.bytes() > 0) {
    lse_.fill(0xff, stream.handle());
  }
}

std::vector<unsigned char> PrefillProblem::download_outputs(const DeviceStream& stream) const {
  std::vector<unsigned char> bytes(out_.bytes() + lse_.bytes());
  out_.download(bytes.data(), out_.bytes(), stream.handle());
  if (lse_.bytes() > 0) {
    lse_.download(bytes.data() + out_.bytes(), lse_.bytes(), stream.handle());
  }
  return bytes;
}

}  // namespace attnjit::check
