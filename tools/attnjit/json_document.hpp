// The JSON documents that commands print: on one line, UTF-8 whatever a file is called.
// Thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace attnjit {

// Sets object[name] to the path. Bytes of it that are no UTF-8 become \xNN there, and
// object[name + "_hex"] holds all of its bytes in hexadecimal, so that the path can be had back.
void set_path(nlohmann::ordered_json& object, const std::string& name,
              const std::filesystem::path& path);

// The document on one line; malformed UTF-8 in any text of it becomes \xNN.
std::string to_line(nlohmann::ordered_json document);

}  // namespace attnjit
