// What an entry says of its kernel -> the pieces of tables and JSON documents that ls, show, res
// and diff share. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "attnjit/kernel_metadata.hpp"

namespace attnjit {

constexpr std::size_t shown_key_digits = 12;  // of a key in a table

// The config as an object; as text where another version wrote no object.
nlohmann::ordered_json config_json(const std::string& config);

// Fields of a config and their values as text, without the kernel's name; none if it is no object.
std::vector<std::pair<std::string, std::string>> config_fields(const std::string& config);

// Registers, spills, stack, barriers, shared memory, threads, and occupancy on the first card of
// the architecture if that is known.
nlohmann::ordered_json resources_json(const KernelMetadata& metadata);

// The same, named, for tables: {"registers", "168"}, …
std::vector<std::pair<std::string, std::string>> resource_facts(const KernelMetadata& metadata);

// Bytes that a thread spills: stores and loads.
int spill_bytes(const KernelMetadata& metadata);

}  // namespace attnjit
