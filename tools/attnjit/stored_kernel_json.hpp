// What a cache holds, as JSON: one shape for `ls` and `report`. Pure; thread-safe.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "stored_kernel.hpp"

namespace attnjit {

nlohmann::ordered_json to_json(const StoredKernel& stored);
nlohmann::ordered_json to_json(const std::vector<DamagedEntry>& damaged);

}  // namespace attnjit
