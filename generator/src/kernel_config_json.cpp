#include "attnjit/kernel_config_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "json_member.hpp"
#include "json_text.hpp"

namespace attnjit {
namespace {

constexpr int deepest_nesting = 8;
constexpr const char* other_version = "write it with the version of attnjit that reads it";

template <typename Member>
void read_member(const std::string& name, const nlohmann::json& json, Member& member,
                 std::vector<Violation>& violations) {
  if constexpr (std::is_same_v<Member, MaskFormula>) {
    std::string text;
    read_json_member(name, json, text, violations);
    try {
      member = text.empty() ? MaskFormula{} : parse_mask_formula(text);
    } catch (const MaskFormulaError& error) {
      violations.push_back({name, shown_json(json), error.what(), "give masks joined by and, or"});
    }
  } else {
    read_json_member(name, json, member, violations);
  }
}

template <typename Config>
KernelConfig read_fields(const nlohmann::json& json, std::vector<Violation>& violations) {
  Config config;
  std::vector<std::string> names = {"kernel"};
  for_each_field(std::as_const(config), [&](const char* name, const auto& shown, const char*) {
    // The fields are shown as constant; they are those of `config`, which is not.
    auto& member = const_cast<std::remove_cvref_t<decltype(shown)>&>(shown);
    names.emplace_back(name);
    if (json.contains(name)) {
      read_member(name, json[name], member, violations);
    } else {
      violations.push_back({name, "", "is missing", other_version});
    }
  });
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      violations.push_back(
          {shown_text(name), shown_json(value), "is not a field of this kernel", other_version});
    }
  }
  return config;
}

// Tries the kinds of config one after another for the template called `name`.
template <typename... Configs>
std::optional<KernelConfig> read_as_any(std::variant<Configs...>*, const std::string& name,
                                        const nlohmann::json& json,
                                        std::vector<Violation>& violations) {
  std::optional<KernelConfig> read;
  (void)((kernel_name(Configs{}) == name &&
          (read = read_fields<Configs>(json, violations)).has_value()) ||
         ...);
  return read;
}

nlohmann::json parse_object(std::string_view text) {
  try {
    const ParsedJson parsed = parse_json_text(text, deepest_nesting);
    if (!parsed.value.is_object() || !parsed.repeated.empty()) {
      throw ConfigJsonError("config: must be one JSON object with each field once; fix: " +
                            std::string(other_version));
    }
    return parsed.value;
  } catch (const JsonTextError& error) {
    throw ConfigJsonError(
        fmt::format("config: is not JSON: {}; fix: {}", error.what(), other_version));
  }
}

}  // namespace

KernelConfig kernel_config_from_json(std::string_view text) {
  const nlohmann::json json = parse_object(text);
  const auto kernel = json.find("kernel");
  const bool is_named = kernel != json.end() && kernel->is_string();
  std::vector<Violation> violations;
  constexpr KernelConfig* kinds = nullptr;
  const auto config =
      is_named ? read_as_any(kinds, kernel->get<std::string>(), json, violations) : std::nullopt;
  if (!config) {
    violations.push_back({"kernel", is_named ? shown_json(*kernel) : "",
                          "must be the name of a kernel template", other_version});
  }
  if (!violations.empty()) {
    std::vector<std::string> lines;
    for (const Violation& violation : violations) {
      lines.push_back(to_string(violation));
    }
    throw ConfigJsonError(fmt::format("{}", fmt::join(lines, "; ")));
  }
  return *config;
}

}  // namespace attnjit
