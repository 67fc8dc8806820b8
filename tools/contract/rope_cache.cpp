#include "rope_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace attnjit::contract {

RopeCachePlaces::RopeCachePlaces(const check::PrefillCase& prefill_case, const RopeCacheForm& form)
    : page_size_(form.page_size), batch_(prefill_case.batch()), num_keys_(prefill_case.kv_len(0)) {
  std::vector<check::KeyRange> ranges;
  for (int b = 0; b < batch_; ++b) {
    ranges.push_back({0, prefill_case.kv_len(b)});
    cached_.push_back(prefill_case.kv_len(b) - prefill_case.q_len(b));
  }
  table_ = check::make_block_table(ranges, std::max(1, page_size_), check::CacheArrangement::pool,
                                   prefill_case.seed);
}

RowIndex RopeCachePlaces::place(int request, int key) const {
  if (!is_paged()) {
    return {request, key};
  }
  const auto entry = static_cast<std::size_t>(request * table_.columns + key / page_size_);
  return {table_.ids[entry], key % page_size_};
}

TensorView RopeCachePlaces::upload_block_table(CallMemory& memory) const {
  return is_paged() ? memory.upload(table_.ids, {batch_, table_.columns}) : TensorView{};
}

TensorView RopeCachePlaces::upload_cache_lengths(CallMemory& memory) const {
  return is_paged() ? memory.upload(cached_, {batch_}) : TensorView{};
}

std::vector<int> key_offsets(const check::PrefillCase& prefill_case) {
  std::vector<int> offsets = {prefill_case.rows_before};
  for (const int keys : prefill_case.kv_lens) {
    offsets.push_back(offsets.back() + keys);
  }
  return offsets;
}

}  // namespace attnjit::contract
