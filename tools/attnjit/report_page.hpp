// The page of `attnjit report`: one self-contained HTML file that a script in it draws from a JSON
// document. Pure; thread-safe.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace attnjit {

// `data` is what report_data.hpp makes. Bytes that are no UTF-8 become \xNN.
std::string report_page(const nlohmann::ordered_json& data);

}  // namespace attnjit
