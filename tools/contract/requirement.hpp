// What attnjit must do, as data: requirements, and the cases that show each of them. Plain values.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "reference_comparison.hpp"

namespace attnjit::contract {

struct ContractGpu;

// How a case shows that a requirement is met.
enum class Proof {
  reference,   // results are those of the fp64 reference, within its tolerance
  equal_bits,  // results of two calls are equal to the bit
  refusal,     // a call or a descriptor is refused, by the name of what is wrong, with the fix
  property,    // a plain fact about what the library returns or accepts
};
std::string_view to_string(Proof);

// One of `on_host`, which needs no GPU, and `on_gpu` is set. What they throw is the case's failure.
struct ContractCase {
  std::string name;  // unique within its requirement
  Proof proof = Proof::property;
  std::vector<AttentionDescriptor> kernels = {};  // that it runs, to be compiled before
  std::function<check::CheckResult()> on_host = nullptr;
  std::function<check::CheckResult(ContractGpu&)> on_gpu = nullptr;
};

using ContractCases = std::vector<ContractCase>;

// A row of the suite: one requirement, reading or trap.
struct Requirement {
  std::string id;        // "R42", "A7", "§4.5", "§5 permuted block table"
  std::string sentence;  // what is required
  ContractCases cases;
  std::string not_covered;  // what no case shows yet: the requirement fails; empty: nothing
};

// `first` and then `more`: cases, or requirements.
template <typename Element>
std::vector<Element> joined(std::vector<Element> first, std::vector<Element> more) {
  std::move(more.begin(), more.end(), std::back_inserter(first));
  return first;
}

// Whether `id` is of the pattern: `*` stands for any text, `?` for one byte.
bool matches_glob(std::string_view pattern, std::string_view id);

}  // namespace attnjit::contract
