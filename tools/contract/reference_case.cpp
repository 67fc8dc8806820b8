#include "reference_case.hpp"

#include <utility>

#include "contract_gpu.hpp"

namespace attnjit::contract {
namespace {

ContractCase suite_case(const std::string& name, Proof proof, check::CheckKind kind,
                        const check::DecodeCase& decode_case) {
  return {.name = name,
          .proof = proof,
          .kernels = {decode_case.descriptor},
          .on_gpu = [each = check::SuiteCase{"", kind, decode_case}](ContractGpu& gpu) {
            return gpu.decode.check(each);
          }};
}

ContractCase suite_case(const std::string& name, Proof proof, bool is_permutation,
                        const check::PrefillCase& prefill_case) {
  return {.name = name,
          .proof = proof,
          .kernels = {prefill_case.descriptor},
          .on_gpu = [each = check::PrefillSuiteCase{"", is_permutation, prefill_case}](
                        ContractGpu& gpu) { return gpu.prefill.check(each); }};
}

}  // namespace

ContractCase reference_case(const std::string& name, const check::DecodeCase& decode_case) {
  return suite_case(name, Proof::reference, check::CheckKind::reference, decode_case);
}

ContractCase reference_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return suite_case(name, Proof::reference, false, prefill_case);
}

ContractCase reference_case(const std::string& name, const check::SparseMlaCase& sparse_case) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {sparse_case.descriptor},
          .on_gpu = [sparse_case](ContractGpu& gpu) { return gpu.sparse_mla.check(sparse_case); }};
}

ContractCase permutation_case(const std::string& name, const check::DecodeCase& decode_case) {
  return suite_case(name, Proof::equal_bits, check::CheckKind::permutation, decode_case);
}

ContractCase permutation_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return suite_case(name, Proof::equal_bits, true, prefill_case);
}

ContractCase batch_invariance_case(const std::string& name, const check::DecodeCase& decode_case) {
  return suite_case(name, Proof::equal_bits, check::CheckKind::batch, decode_case);
}

ContractCase sink_oracle_case(const std::string& name, check::DecodeCase decode_case) {
  decode_case.descriptor.has_sinks = true;
  decode_case.softmax_scale = 0;
  decode_case.kv_scale = 0;
  decode_case.kv_offset = 1;
  return suite_case(name, Proof::reference, check::CheckKind::sink_oracle, decode_case);
}

}  // namespace attnjit::contract
