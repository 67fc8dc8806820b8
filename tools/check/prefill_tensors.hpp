// PrefillCase -> the small tensors of its call, on the host: offsets, lengths, positions, masks,
// segments, slopes and sinks; and how many rows the large ones have. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "attnjit/prefill.hpp"
#include "prefill_case.hpp"

namespace attnjit::check {

// Contiguous; `view` points nowhere yet.
struct SmallTensor {
  TensorView PrefillCall::*place = nullptr;
  TensorView view;
  std::vector<unsigned char> bytes;
};

// All that the case's call takes, block table aside: whatever may be left out is left out.
std::vector<SmallTensor> make_small_tensors(const PrefillCase& prefill_case);

// Rows of q and out, or of k and v: all of them if they are ragged, those per request if dense.
std::int64_t count_query_rows(const PrefillCase& prefill_case);
std::int64_t count_key_rows(const PrefillCase& prefill_case);

// q of the case, and out with head_dim_v: a view of no memory yet, in the case's layout.
TensorView query_view(const PrefillCase& prefill_case, DataType dtype, int head_dim);

// The same of ragged or dense k and v.
TensorView key_view(const PrefillCase& prefill_case, int head_dim);

// Bytes that a view spans, from its first element on.
std::int64_t span_bytes(const TensorView& view);

}  // namespace attnjit::check
