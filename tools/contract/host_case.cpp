#include "host_case.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attnjit/argument_error.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "contract_gpu.hpp"
#include "refusal.hpp"

namespace attnjit::contract {
namespace {

std::string find_wrong_code(FlashMlaErrorCode code, const std::function<void()>& action) {
  try {
    action();
  } catch (const FlashMlaError& error) {
    const std::string message = error.what();
    if (error.code() != code) {
      return fmt::format("refused as {}, not as {}", message, to_string(code));
    }
    const bool is_complete = message.starts_with(std::string(to_string(code)) + ": ") &&
                             message.find("; fix: ") != std::string::npos;
    return is_complete ? "" : fmt::format("refused without code, cause and fix: {}", message);
  }
  return "accepted";
}

std::string find_wrong_field(const std::string& field, const std::function<void()>& action) {
  try {
    action();
  } catch (const DescriptorError& error) {
    return check::find_fault(error.violations(), {field});
  } catch (const ArgumentError& error) {
    return check::find_fault(error.violations(), {field});
  }
  return "accepted";
}

}  // namespace

ContractCase refused_as(const std::string& name, FlashMlaErrorCode code,
                        std::function<void()> action) {
  return {.name = name, .proof = Proof::refusal, .on_host = [code, action = std::move(action)] {
            return result_of(find_wrong_code(code, action));
          }};
}

ContractCase refused_field(const std::string& name, const std::string& field,
                           std::function<void()> action) {
  return {.name = name, .proof = Proof::refusal, .on_host = [field, action = std::move(action)] {
            return result_of(find_wrong_field(field, action));
          }};
}

ContractCase refused_descriptor(const std::string& name, const std::string& field,
                                const AttentionDescriptor& descriptor) {
  return refused_field(name, field, [descriptor] { validate(descriptor); });
}

ContractCase accepted(const std::string& name, std::function<void()> action) {
  return {.name = name, .proof = Proof::property, .on_host = [action = std::move(action)] {
            action();
            return result_of("");
          }};
}

ContractCase holds(const std::string& name, std::function<bool()> fact) {
  return {.name = name, .proof = Proof::property, .on_host = [fact = std::move(fact)] {
            return result_of(fact() ? "" : "is not so");
          }};
}

}  // namespace attnjit::contract
