#include "flare_case.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attnjit/merge_states.hpp"
#include "contract_gpu.hpp"
#include "host_tensor.hpp"
#include "merge_case.hpp"
#include "prefill_problem.hpp"
#include "prefill_tensors.hpp"

namespace attnjit::contract {
namespace {

AttentionDescriptor rope_descriptor(const check::PrefillCase& prefill_case, int page_size) {
  AttentionDescriptor descriptor = prefill_case.descriptor;
  descriptor.operation = Operation::mla_prefill_rope;
  descriptor.kv_layout = page_size > 0 ? KvLayout::paged : KvLayout::dense;
  descriptor.kv_layout_tag = page_size > 0 ? KvLayoutTag::nhd : KvLayoutTag::bshd;
  descriptor.page_size = page_size;
  descriptor.dtype_rope = descriptor.dtype_q;
  return descriptor;
}

// Every head's rope columns become those of head 0.
void share_rope(HostTensor& keys, int depth) {
  for_each_row(keys.view, [&](const RowIndex& index) {
    if (index[1] > 0) {
      const std::uint16_t* const first = keys.row({index[0], 0});
      std::copy(first + depth, first + keys.columns(), keys.row(index) + depth);
    }
  });
}

// What a call takes in place of the last columns of k.
struct RopeCache {
  TensorView rope;
  TensorView block_table;    // of a paged one
  TensorView cache_lengths;  // the same
};

RopeCache make_rope_cache(const check::PrefillCase& prefill_case, const RopeCacheForm& form,
                          HostTensor& keys, CallMemory& memory) {
  const int depth = prefill_case.descriptor.head_dim_v;
  const std::int64_t rope = keys.columns() - depth;
  const std::vector<int> first_key = key_offsets(prefill_case);
  const RopeCachePlaces places(prefill_case, form);
  HostTensor cache = places.cache(keys.view.dtype, form.width, poison_bits);
  for (int b = 0; b < prefill_case.batch(); ++b) {
    for (int key = 0; key < prefill_case.kv_len(b); ++key) {
      std::copy_n(keys.row({first_key[static_cast<std::size_t>(b)] + key, 0}) + depth, rope,
                  cache.row(places.place(b, key)) + form.width - rope);
    }
  }
  return {memory.upload(cache), places.upload_block_table(memory),
          places.upload_cache_lengths(memory)};
}

// Keys [begin, end) of each request.
struct KeyChunk {
  std::vector<int> begin;
  std::vector<int> end;
};

KeyChunk chunk_of(const check::PrefillCase& prefill_case, int chunk, int chunks) {
  KeyChunk part;
  for (const int keys : prefill_case.kv_lens) {
    part.begin.push_back(keys * chunk / chunks);
    part.end.push_back(keys * (chunk + 1) / chunks);
  }
  return part;
}

// The rows of a chunk, the requests' end to end, without the columns past `columns`.
HostTensor rows_of_chunk(const check::PrefillCase& prefill_case, const KeyChunk& chunk,
                         HostTensor& whole, std::int64_t columns) {
  const std::vector<int> first_key = key_offsets(prefill_case);
  std::vector<std::int64_t> rows;
  for (std::size_t b = 0; b < chunk.begin.size(); ++b) {
    for (int key = chunk.begin[b]; key < chunk.end[b]; ++key) {
      rows.push_back(first_key[b] + key);
    }
  }
  HostTensor part = poisoned_tensor(
      whole.view.dtype, {static_cast<std::int64_t>(rows.size()), whole.view.shape[1], columns});
  for_each_row(part.view, [&](const RowIndex& index) {
    std::copy_n(whole.row({rows[static_cast<std::size_t>(index[0])], index[1]}), columns,
                part.row(index));
  });
  return part;
}

std::vector<int> chunk_offsets(const KeyChunk& chunk) {
  std::vector<int> offsets = {0};
  for (std::size_t b = 0; b < chunk.begin.size(); ++b) {
    offsets.push_back(offsets.back() + chunk.end[b] - chunk.begin[b]);
  }
  return offsets;
}

// A problem whose keys share their rope columns, and what calls of the façade take of it.
class FlareProblem {
 public:
  FlareProblem(ContractGpu& gpu, const check::PrefillCase& prefill_case, const RopeCacheForm& form)
      : gpu_(gpu),
        problem_(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed),
        memory_(gpu.stream),
        keys_(download(problem_.call().k, gpu.stream)),
        values_(download(problem_.call().v, gpu.stream)),
        kernel_(gpu.runtime.prepare_prefill(rope_descriptor(prefill_case, form.page_size),
                                            gpu.device())) {
    share_rope(keys_, prefill_case.descriptor.head_dim_v);
    whole_keys_ = memory_.upload(keys_);
    rope_ = make_rope_cache(prefill_case, form, keys_, memory_);
    problem_.poison_outputs(gpu.stream);
  }

  const PrefillCall& call() const { return problem_.call(); }
  CallMemory& memory() { return memory_; }

  // Into `out` and `lse`.
  void run(const KeyChunk& chunk, const TensorView& out, const TensorView& lse) {
    const check::PrefillCase& prefill_case = problem_.prefill_case();
    const int depth = prefill_case.descriptor.head_dim_v;
    const std::int64_t batch = prefill_case.batch();
    FlareMlaPrefillCall flare;
    flare.output = out;
    flare.q = call().q;
    flare.k = memory_.upload(rows_of_chunk(prefill_case, chunk, keys_, depth));
    flare.v = memory_.upload(rows_of_chunk(prefill_case, chunk, values_, depth));
    flare.k_rope = rope_.rope;
    flare.block_table = rope_.block_table;
    flare.cache_lengths = rope_.cache_lengths;
    flare.valid_length = call().q_offsets;
    flare.cache_row_offsets = memory_.upload(chunk_offsets(chunk), {batch + 1});
    const bool is_first =
        std::all_of(chunk.begin.begin(), chunk.begin.end(), [](int key) { return key == 0; });
    if (!is_first) {
      flare.cache_offsets = memory_.upload(chunk.begin, {batch});
    }
    flare.lse = lse;
    flare.mask = call().mask;
    flare.scale = call().softmax_scale;
    flare_mla_prefill(*kernel_, flare, gpu_.stream.handle());
  }

  check::CheckResult judge() const {
    check::ReferenceCall reference = problem_.reference_call();
    reference.call.k.data = whole_keys_.data;
    return compare(gpu_, reference, check::count_values(problem_.prefill_case()));
  }

 private:
  ContractGpu& gpu_;
  check::PrefillProblem problem_;
  CallMemory memory_;
  HostTensor keys_;
  HostTensor values_;
  std::shared_ptr<const PreparedPrefill> kernel_;
  TensorView whole_keys_;
  RopeCache rope_;
};

check::CheckResult run_flare(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                             const RopeCacheForm& form) {
  FlareProblem problem(gpu, prefill_case, form);
  problem.run(chunk_of(prefill_case, 0, 1), problem.call().out, problem.call().lse);
  return problem.judge();
}

check::CheckResult run_flare_chunks(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                                    const RopeCacheForm& form, int chunks) {
  FlareProblem problem(gpu, prefill_case, form);
  std::vector<PartialAttention> parts;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const KeyChunk keys = chunk_of(prefill_case, chunk, chunks);
    if (keys.begin == keys.end) {
      continue;  // of so few keys that none is in it
    }
    const TensorView out = problem.memory().poisoned(problem.call().out);
    const TensorView lse = problem.memory().poisoned(problem.call().lse);
    problem.run(keys, out, lse);
    parts.push_back({out, permuted_view(lse, {1, 0})});
  }
  merge_owned_rows(gpu, prefill_case, parts, problem.call());
  return problem.judge();
}

}  // namespace

check::PrefillCase flare_problem(const FlareMlaPrefillShape& shape, const check::Lengths& lengths) {
  std::vector<check::PrefillSuiteCase> suite;
  AttentionDescriptor descriptor =
      check::ragged_descriptor(shape.num_heads, shape.num_heads, shape.q_depth);
  descriptor.head_dim_v = shape.depth;
  descriptor.mask = shape.mask;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  return check::add_prefill_case(suite, "", descriptor, lengths);
}

ContractCase flare_case(const std::string& name, const check::PrefillCase& prefill_case,
                        const RopeCacheForm& form) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {rope_descriptor(prefill_case, form.page_size)},
          .on_gpu = [prefill_case, form](ContractGpu& gpu) {
            return run_flare(gpu, prefill_case, form);
          }};
}

ContractCase flare_chunks_case(const std::string& name, const check::PrefillCase& prefill_case,
                               int chunks, const RopeCacheForm& form) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {rope_descriptor(prefill_case, form.page_size),
                      merge_states_descriptor(prefill_case.descriptor.head_dim_v,
                                              prefill_case.descriptor.dtype_out)},
          .on_gpu = [prefill_case, form, chunks](ContractGpu& gpu) {
            return run_flare_chunks(gpu, prefill_case, form, chunks);
          }};
}

}  // namespace attnjit::contract
