// A descriptor and the sizes of a batch -> the call whose work is counted (roof) and timed (bench).
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "call_timing.hpp"
#include "decode_case.hpp"
#include "plan_arguments.hpp"
#include "prefill_case.hpp"

namespace attnjit {

// Numbers of which every combination is looked at.
struct BatchSizes {
  std::vector<int> batches = {1, 64, 128};
  std::vector<int> seqlens_kv = {4096};
  int seqlen_q = 0;  // of prefill; 0 = as many as keys
};

// Declares --batch, --seqlen-kv and --seqlen-q on `command`; `sizes` must outlive the parse.
void add_batch_sizes(CLI::App& command, BatchSizes& sizes);

// The calls of arguments.model: a model's decodes, unless --phases asks for its prefills; or the
// one call of a descriptor. Throws as find_descriptors, and UsageError for sizes that none of them
// has.
std::vector<AttentionDescriptor> find_timed_calls(const PlanArguments& arguments,
                                                  const BatchSizes& sizes);

// A batch of equal requests, of a decode or of a prefill.
check::DecodeCase make_decode_case(const AttentionDescriptor& descriptor, int batch, int seqlen_kv);
check::PrefillCase make_prefill_case(const AttentionDescriptor& descriptor, int batch,
                                     int seqlen_kv, int seqlen_q);

// The case of the descriptor's operation, its name in tables and what it must do at least.
struct CountedCall {
  std::string name;
  int seqlen_q = 0;
  check::CallWork work;
};
CountedCall count_call(const AttentionDescriptor& descriptor, int batch, int seqlen_kv,
                       int seqlen_q);

}  // namespace attnjit
