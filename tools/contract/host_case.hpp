// Cases that need no GPU: what must be refused, and what must simply be so. Pure; thread-safe.
#pragma once

#include <functional>
#include <string>

#include "attnjit/flash_mla.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// `action` must throw a FlashMlaError of this code, whose message says it and a fix.
ContractCase refused_as(const std::string& name, FlashMlaErrorCode code,
                        std::function<void()> action);

// `action` must throw a DescriptorError or an ArgumentError that names `field`, with what is
// allowed and the fix.
ContractCase refused_field(const std::string& name, const std::string& field,
                           std::function<void()> action);

// validate must refuse the descriptor, naming `field`.
ContractCase refused_descriptor(const std::string& name, const std::string& field,
                                const AttentionDescriptor& descriptor);

// `action` must not throw.
ContractCase accepted(const std::string& name, std::function<void()> action);

// `fact` must be true.
ContractCase holds(const std::string& name, std::function<bool()> fact);

}  // namespace attnjit::contract
