#include "flare_fp8_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "contract_gpu.hpp"
#include "element_bits.hpp"
#include "host_tensor.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {
namespace {

using Values = HostElements<float>;

constexpr int columns_per_scale = 64;
constexpr float poison_value = std::bit_cast<float>(0xffffffffU);

AttentionDescriptor rope_descriptor(FlareMlaPrefillShape shape, const RopeCacheForm& form) {
  shape.page_size = form.page_size;
  shape.returns_lse = true;
  return flare_mla_prefill_descriptor(shape);
}

// The same attention with all columns of q and k in one tensor, of one type.
check::PrefillCase whole_problem(const FlareMlaPrefillShape& shape, const check::Lengths& lengths) {
  AttentionDescriptor descriptor =
      check::ragged_descriptor(shape.num_heads, shape.num_heads, shape.q_depth);
  const AttentionDescriptor with_rope = flare_mla_prefill_descriptor(shape);
  descriptor.head_dim_v = shape.depth;
  descriptor.mask = shape.mask;
  descriptor.dtype_q = with_rope.dtype_q;
  descriptor.dtype_kv = with_rope.dtype_kv;
  descriptor.dtype_out = with_rope.dtype_out;
  descriptor.scales_q = with_rope.scales_q;
  descriptor.scales_kv = with_rope.scales_kv;
  std::vector<check::PrefillSuiteCase> suite;
  check::PrefillCase& problem = check::add_prefill_case(suite, "", descriptor, lengths);
  problem.scales_share_heads = true;
  return problem;
}

// In fp32: what a tensor stands for, bf16 or already fp32.
Values values_of(const TensorView& view, const DeviceStream& stream) {
  if (view.dtype == DataType::fp32) {
    return download<float>(view, stream);
  }
  const HostTensor bits = download(view, stream);
  Values values = {bits.view, {}};
  values.view.dtype = DataType::fp32;
  for (const std::uint16_t element : bits.elements) {
    values.elements.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(element) << 16));
  }
  return values;
}

// The first columns of a tensor's rows.
TensorView narrowed(TensorView view, int columns) {
  view.shape.at(static_cast<std::size_t>(view.rank - 1)) = columns;
  return view;
}

// Of few bits, no power of two as a rule.
float scale_of(int key, int block) {
  const unsigned draw =
      (static_cast<unsigned>(key) * 2654435761U + static_cast<unsigned>(block)) >> 7;
  return (1.0F + static_cast<float>(draw % 64) / 64.0F) / static_cast<float>(1U << (draw / 64 % 4));
}

// A problem whose rope columns become what a cache of the call's types can hold.
class FlareFp8Problem {
 public:
  FlareFp8Problem(ContractGpu& gpu, const FlareMlaPrefillShape& shape,
                  const check::Lengths& lengths, const RopeCacheForm& form)
      : gpu_(gpu),
        descriptor_(rope_descriptor(shape, form)),
        form_(form),
        problem_(gpu.kernels, whole_problem(shape, lengths), gpu.stream, 1),
        memory_(gpu.stream),
        reference_(problem_.reference_call()) {
    fill_call();
    make_queries();
    make_values();
    make_rope();
    problem_.poison_outputs(gpu.stream);
  }

  check::CheckResult run_and_judge() {
    const auto kernel = gpu_.runtime.prepare_prefill(descriptor_, gpu_.device());
    flare_mla_prefill(*kernel, call_, gpu_.stream.handle());
    return compare(gpu_, reference_, check::count_values(problem_.prefill_case()));
  }

 private:
  int depth() const { return descriptor_.head_dim_v; }
  int rope_columns() const { return descriptor_.head_dim_qk - depth(); }

  void fill_call() {
    const PrefillCall& whole = problem_.call();
    call_.output = whole.out;
    call_.lse = whole.lse;
    call_.q = descriptor_.q_rope_apart ? narrowed(whole.q, depth()) : whole.q;
    call_.k = narrowed(whole.k, depth());
    call_.v = whole.v;
    call_.q_scale = whole.q_scales;
    call_.k_scales = whole.k_scales;
    call_.valid_length = whole.q_offsets;
    call_.cache_row_offsets = whole.kv_offsets;
    call_.scale = whole.softmax_scale;
  }

  // A rope of its own is rounded to bf16, and has the scale of its token.
  void make_queries() {
    if (!descriptor_.q_rope_apart) {
      return;
    }
    Values queries = values_of(reference_.call.q, gpu_.stream);
    Values scales = download<float>(call_.q_scale, gpu_.stream);
    const TensorView& q = call_.q;
    HostTensor rope = poisoned_tensor(DataType::bf16, {q.shape[0], q.shape[1], rope_columns()});
    for_each_row(rope.view, [&](const RowIndex& index) {
      float* const values = queries.row(index) + depth();
      for (int column = 0; column < rope_columns() && !std::isnan(values[column]); ++column) {
        rope.row(index)[column] = check::bf16_bits(values[column]);
        values[column] = check::round_to_bf16(values[column]) * *scales.row({index[0], 0});
      }
    });
    call_.q_rope = memory_.upload(rope);
    reference_.call.q = memory_.upload(queries);
  }

  // The façade's v has no scales: its elements are its values. What the problem draws is large
  // before it is scaled: the tolerance is for outputs of the size of those that are.
  void make_values() {
    Values values = values_of(reference_.call.v, gpu_.stream);
    if (problem_.call().v_scales.data != nullptr) {
      auto codes = download<std::uint8_t>(call_.v, gpu_.stream);
      for_each_row(values.view, [&](const RowIndex& index) {
        float* const row = values.row(index);
        for (int column = 0; column < depth() && !std::isnan(row[column]); ++column) {
          codes.row(index)[column] = check::e4m3_code(row[column]);
          row[column] = check::e4m3_value(codes.row(index)[column]);
        }
      });
      call_.v = memory_.upload(codes);
    }
    reference_.call.v = memory_.upload(values);
  }

  void make_rope() {
    Values keys = values_of(reference_.call.k, gpu_.stream);
    const RopeCachePlaces places(problem_.prefill_case(), form_);
    if (size_bytes(descriptor_.dtype_rope) == 1) {
      make_fp8_rope(places, keys);
    } else {
      make_bf16_rope(places, keys);
    }
    share_rope(keys);
    call_.block_table = places.upload_block_table(memory_);
    call_.cache_lengths = places.upload_cache_lengths(memory_);
    reference_.call.k = memory_.upload(keys);
  }

  // Calls visit(place in the cache, row of k, the row's rope in `keys`) for each key of a query.
  template <typename Visit>
  void for_each_key(const RopeCachePlaces& places, Values& keys, const Visit& visit) {
    const check::PrefillCase& prefill_case = problem_.prefill_case();
    const std::vector<int> first_key = key_offsets(prefill_case);
    for (int b = 0; b < prefill_case.batch(); ++b) {
      for (int key = 0; key < prefill_case.kv_len(b); ++key) {
        const int row = first_key[static_cast<std::size_t>(b)] + key;
        float* const rope = keys.row({row, 0}) + depth();
        if (!std::isnan(*rope)) {
          visit(places.place(b, key), row, rope);
        }
      }
    }
  }

  void make_fp8_rope(const RopeCachePlaces& places, Values& keys) {
    const bool is_scaled = descriptor_.scales_rope != ScaleGrain::none;
    HostElements<std::uint8_t> cache =
        places.cache(descriptor_.dtype_rope, form_.width, poison_byte);
    Values scales =
        places.cache(DataType::fp32, std::max(1, form_.width / columns_per_scale), poison_value);
    for_each_key(places, keys, [&](const RowIndex& place, int row, float* rope) {
      std::uint8_t* const codes = cache.row(place) + form_.width - rope_columns();
      float* const last_scale = scales.row(place) + scales.columns();
      for (int column = 0; column < rope_columns(); ++column) {
        codes[column] = check::e4m3_code(rope[column]);
        rope[column] = check::e4m3_value(codes[column]);
        if (is_scaled) {
          const int block = column / columns_per_scale;
          const float scale = scale_of(row, block);
          last_scale[block - rope_columns() / columns_per_scale] = scale;
          rope[column] = check::round_to_bf16(rope[column] * scale);
        }
      }
    });
    call_.k_rope = memory_.upload(cache);
    if (is_scaled) {
      call_.k_rope_scales = memory_.upload(scales);
    }
  }

  // With the scale of its token, if k has one.
  void make_bf16_rope(const RopeCachePlaces& places, Values& keys) {
    const bool is_scaled = call_.k_scales.data != nullptr;
    Values scales = is_scaled ? download<float>(call_.k_scales, gpu_.stream) : Values{};
    HostTensor cache = places.cache(DataType::bf16, form_.width, poison_bits);
    for_each_key(places, keys, [&](const RowIndex& place, int row, float* rope) {
      std::uint16_t* const bits = cache.row(place) + form_.width - rope_columns();
      for (int column = 0; column < rope_columns(); ++column) {
        bits[column] = check::bf16_bits(rope[column]);
        rope[column] =
            check::round_to_bf16(rope[column]) * (is_scaled ? *scales.row({row, 0}) : 1.0F);
      }
    });
    call_.k_rope = memory_.upload(cache);
  }

  // Every head's rope columns become those of head 0.
  void share_rope(Values& keys) const {
    for_each_row(keys.view, [&](const RowIndex& index) {
      const float* const first = keys.row({index[0], 0}) + depth();
      if (index[1] > 0) {
        std::copy_n(first, rope_columns(), keys.row(index) + depth());
      }
    });
  }

  ContractGpu& gpu_;
  AttentionDescriptor descriptor_;
  RopeCacheForm form_;
  check::PrefillProblem problem_;
  CallMemory memory_;
  check::ReferenceCall reference_;
  FlareMlaPrefillCall call_;
};

}  // namespace

ContractCase flare_fp8_case(const std::string& name, const FlareMlaPrefillShape& shape,
                            const check::Lengths& lengths, const RopeCacheForm& form) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {rope_descriptor(shape, form)},
          .on_gpu = [shape, lengths, form](ContractGpu& gpu) {
            return FlareFp8Problem(gpu, shape, lengths, form).run_and_judge();
          }};
}

}  // namespace attnjit::contract
