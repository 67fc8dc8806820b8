#include "timed_calls.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "decode_source.hpp"
#include "decode_timing.hpp"
#include "prefill_timing.hpp"

namespace attnjit {

void add_batch_sizes(CLI::App& command, BatchSizes& sizes) {
  command.add_option("--batch", sizes.batches, "Requests, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--seqlen-kv", sizes.seqlens_kv, "Keys per request, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command
      .add_option("--seqlen-q", sizes.seqlen_q,
                  "Query tokens per request of a prefill; 0: as many as keys")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
}

std::vector<AttentionDescriptor> find_timed_calls(const PlanArguments& arguments,
                                                  const BatchSizes& sizes) {
  using enum Operation;
  const bool may_prefill = arguments.names_phases || find_descriptor(arguments.model).has_value();
  std::vector<AttentionDescriptor> calls = find_descriptors(
      arguments, may_prefill ? std::vector{decode, prefill, prefill_kvcache} : std::vector{decode});
  const bool has_prefill =
      std::any_of(calls.begin(), calls.end(),
                  [](const AttentionDescriptor& call) { return call.operation != decode; });
  refuse_option(!has_prefill && sizes.seqlen_q != BatchSizes{}.seqlen_q, "--seqlen-q",
                "decodes alone, whose query tokens are the descriptor's max_seqlen_q or a model's "
                "--max-seqlen-q");
  return calls;
}

check::DecodeCase make_decode_case(const AttentionDescriptor& descriptor, int batch,
                                   int seqlen_kv) {
  check::DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = descriptor.max_seqlen_q;
  decode_case.seq_lens = check::equal_lengths(batch, seqlen_kv);
  decode_case.kv_scale = 1;
  return decode_case;
}

check::PrefillCase make_prefill_case(const AttentionDescriptor& descriptor, int batch,
                                     int seqlen_kv, int seqlen_q) {
  check::PrefillCase prefill_case;
  prefill_case.descriptor = descriptor;
  prefill_case.q_lens = check::equal_lengths(batch, seqlen_q > 0 ? seqlen_q : seqlen_kv);
  prefill_case.kv_lens = check::equal_lengths(batch, seqlen_kv);
  prefill_case.rows_before = 0;
  prefill_case.kv_scale = 1;
  return prefill_case;
}

CountedCall count_call(const AttentionDescriptor& descriptor, int batch, int seqlen_kv,
                       int seqlen_q) {
  if (descriptor.operation == Operation::decode) {
    const check::DecodeCase decode_case = make_decode_case(descriptor, batch, seqlen_kv);
    return {check::describe(decode_case), decode_case.seqlen_q, check::count_work(decode_case)};
  }
  const check::PrefillCase prefill_case = make_prefill_case(descriptor, batch, seqlen_kv, seqlen_q);
  return {check::describe(prefill_case), prefill_case.q_lens.front(),
          check::count_work(prefill_case)};
}

}  // namespace attnjit
