#include "fuzz_run.hpp"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "fuzz_cases.hpp"

namespace attnjit {
namespace {

CheckCase as_check_case(check::DecodeCase decode_case) {
  return check::SuiteCase{"fuzz decode", check::CheckKind::reference, std::move(decode_case)};
}

CheckCase as_check_case(check::PrefillCase prefill_case) {
  return check::PrefillSuiteCase{"fuzz prefill", false, std::move(prefill_case)};
}

// The same for all that share an index.
std::string command_for(std::uint64_t seed, std::uint64_t index) {
  return fmt::format("attnjit check --fuzz 1 --seed {} --first {}", seed, index);
}

void add(FuzzedCases& fuzzed, CheckCase check_case, std::uint64_t seed, std::uint64_t index) {
  fuzzed.cases.push_back(std::move(check_case));
  fuzzed.commands.push_back(command_for(seed, index));
}

void append(FuzzedCases& fuzzed, FuzzedCases more) {
  std::move(more.cases.begin(), more.cases.end(), std::back_inserter(fuzzed.cases));
  std::move(more.commands.begin(), more.commands.end(), std::back_inserter(fuzzed.commands));
}

}  // namespace

FuzzedCases fuzz_cases(const FuzzRange& range) {
  FuzzedCases decodes;
  FuzzedCases prefills;
  FuzzedCases facades;
  FuzzedCases descriptors;
  FuzzedCases calls;
  for (int i = 0; i < range.count; ++i) {
    const std::uint64_t index = range.first + static_cast<std::uint64_t>(i);
    check::FuzzCase problem = check::make_fuzz_case(range.seed, index);
    FuzzedCases& group = std::holds_alternative<check::DecodeCase>(problem) ? decodes : prefills;
    add(group, std::visit([](auto& each) { return as_check_case(std::move(each)); }, problem),
        range.seed, index);
    add(facades, FacadeCase{"fuzz façades", contract::make_fuzz_call(range.seed, index)},
        range.seed, index);
    add(descriptors,
        RefusalCase<check::IllegalDescriptor>{"fuzz illegal descriptors",
                                              check::make_illegal_descriptor(range.seed, index)},
        range.seed, index);
    add(calls,
        RefusalCase<check::IllegalCall>{"fuzz illegal calls",
                                        check::make_illegal_call(range.seed, index)},
        range.seed, index);
  }
  append(decodes, std::move(prefills));
  append(decodes, std::move(facades));
  append(decodes, std::move(descriptors));
  append(decodes, std::move(calls));
  return decodes;
}

void name_commands(CheckReport& report, const FuzzedCases& fuzzed) {
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    report.cases[i].command = fuzzed.commands.at(i);
  }
}

}  // namespace attnjit
