#include "attnjit/tuning_table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "json_member.hpp"
#include "json_text.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::json;
using Violations = std::vector<Violation>;

constexpr int deepest_nesting = 8;

[[noreturn]] void refuse(std::string_view place, const std::string& what) {
  throw TuningError(fmt::format("{}: {}", place, what));
}

// Refuses members of `json` that are not among `names`.
void check_names(const Json& json, const std::vector<std::string_view>& names,
                 Violations& violations) {
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      violations.push_back({shown_text(name), shown_json(value), "is not known here",
                            fmt::format("remove it, or use one of {}", fmt::join(names, ", "))});
    }
  }
}

template <typename Fields>
std::vector<std::string_view> names_of(const Fields& fields) {
  std::vector<std::string_view> names;
  for_each_field(fields, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

template <typename Value>
void read_field(const char* name, const Json& json, Value& member, Violations& violations) {
  if (json.contains(name)) {
    read_json_member(name, json[name], member, violations);
  } else {
    violations.push_back({name, "", "is missing", "give it"});
  }
}

template <typename Value>
void read_field(const char* name, const Json& json, std::optional<Value>& member,
                Violations& violations) {
  if (json.contains(name)) {
    read_json_member(name, json[name], member.emplace(), violations);
  }
}

// The members of the object called `name`; those that are no field of it are refused.
template <typename Fields>
void read_object(const char* name, const Json& row, Fields& fields, Violations& violations) {
  if (!row.contains(name) || !row[name].is_object()) {
    violations.push_back({name, "", "must be an object", "give it as `attnjit tune` writes it"});
    return;
  }
  const Json& json = row[name];
  for_each_field(fields, [&](const char* field, auto& member) {
    read_field(field, json, member, violations);
  });
  check_names(json, names_of(fields), violations);
}

void read_text(const char* name, const Json& json, std::string& text, Violations& violations) {
  if (json.contains(name) && json[name].is_string()) {
    text = json[name].get<std::string>();
  } else {
    violations.push_back({name, "", "must be a text", "give a JSON string"});
  }
}

template <typename Value>
void read_list(const char* name, const Json& json, std::vector<Value>& values,
               Violations& violations) {
  const bool is_list = json.contains(name) && json[name].is_array();
  for (const Json& value : is_list ? json[name] : Json::array()) {
    const bool fits = std::is_same_v<Value, double> ? value.is_number() : value.is_string();
    if (fits) {
      values.push_back(value.get<Value>());
    }
  }
  if (!is_list || values.size() != json[name].size()) {
    violations.push_back(
        {name, "", "must be a list of numbers or texts", "give it as `attnjit tune` writes it"});
  }
}

void read_measured(const Json& row, TunedRow& tuned, Violations& violations) {
  if (!row.contains("measured") || !row["measured"].is_object()) {
    violations.push_back({"measured", "", "must be an object", "tune again"});
    return;
  }
  const Json& json = row["measured"];
  read_text("date", json, tuned.date, violations);
  read_text("command", json, tuned.command, violations);
  read_list("points", json, tuned.points, violations);
  read_list("model_us", json, tuned.model_us, violations);
  read_list("tuned_us", json, tuned.tuned_us, violations);
  check_names(json, {"date", "command", "points", "model_us", "tuned_us"}, violations);
}

TunedRow read_row(std::string_view name, std::size_t index, const Json& json) {
  if (!json.is_object()) {
    refuse(name, fmt::format("row {} must be an object", index));
  }
  TunedRow row;
  Violations violations;
  read_object("key", json, row.key, violations);
  read_object("knobs", json, row.knobs, violations);
  read_measured(json, row, violations);
  check_names(json, {"key", "knobs", "measured"}, violations);
  if (!violations.empty()) {
    refuse(name, fmt::format("row {} ({}): {}", index, describe(row.key),
                             to_string(std::span<const Violation>(violations))));
  }
  return row;
}

template <typename Fields>
nlohmann::ordered_json fields_to_json(const Fields& fields) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto put = [&](const char* name, const auto& value) {
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) {
      json[name] = to_string(value);
    } else {
      json[name] = value;
    }
  };
  for_each_field(fields, [&](const char* name, const auto& member) {
    if constexpr (requires { member.has_value(); }) {
      if (member.has_value()) {
        put(name, *member);
      }
    } else {
      put(name, member);
    }
  });
  return json;
}

// Tenths of a microsecond: what a measurement tells.
std::string times_to_json(const std::vector<double>& microseconds) {
  std::vector<std::string> texts;
  for (const double time : microseconds) {
    texts.push_back(fmt::format("{:.1f}", time));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string row_to_json(const TunedRow& row) {
  return fmt::format(
      "    {{\n      \"key\": {},\n      \"knobs\": {},\n      \"measured\": {{\n"
      "        \"date\": {},\n        \"command\": {},\n        \"points\": {},\n"
      "        \"model_us\": {},\n        \"tuned_us\": {}\n      }}\n    }}",
      fields_to_json(row.key).dump(), fields_to_json(row.knobs).dump(), Json(row.date).dump(),
      Json(row.command).dump(), Json(row.points).dump(), times_to_json(row.model_us),
      times_to_json(row.tuned_us));
}

void check_order(std::string_view name, const std::vector<TunedRow>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (!(rows[i - 1].key < rows[i].key)) {
      refuse(name, fmt::format("row {} ({}): must come after the row before, by its key; fix: let "
                               "`attnjit tune` write the table",
                               i, describe(rows[i].key)));
    }
  }
}

}  // namespace

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::swapped_decode_sm90:
      return "swapped_decode_sm90";
    case AttentionKernel::seesaw_decode_sm90:
      return "seesaw_decode_sm90";
    case AttentionKernel::paged_decode_sm80:
      return "paged_decode_sm80";
  }
  return "";
}

std::string describe(const TuningKey& key) {
  const std::string window = key.mask == MaskKind::sliding_window
                                 ? fmt::format(" {} and {}", key.window_left, key.window_right)
                                 : "";
  return fmt::format("{} {}/{} rows {} page {} {} {}{}{}{}", to_string(key.dtype), key.head_dim_qk,
                     key.head_dim_v, key.rows, key.page_size, to_string(key.value_source),
                     to_string(key.mask), window, key.has_sinks ? " sinks" : "",
                     key.batch_invariant ? " batch-invariant" : "");
}

std::string describe(const TuningKnobs& knobs) {
  const nlohmann::ordered_json json = fields_to_json(knobs);
  std::string text;
  for (const auto& [name, value] : json.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text.empty() ? "the model's" : text;
}

TuningTable parse_tuning_table(std::string_view name, std::string_view text) {
  ParsedJson parsed;
  try {
    parsed = parse_json_text(text, deepest_nesting);
  } catch (const JsonTextError& error) {
    refuse(name, fmt::format("is not JSON: {}", error.what()));
  }
  const Json& json = parsed.value;
  if (!json.is_object() || !json.contains("rows") || !json["rows"].is_array()) {
    refuse(name, "must be an object with a list called rows");
  }
  Violations violations;
  for (const std::string& field : parsed.repeated) {
    violations.push_back({shown_text(field), "", "is given more than once", "give it once"});
  }
  TuningTable table;
  read_text("device", json, table.device, violations);
  read_text("card", json, table.card, violations);
  check_names(json, {"schema", "device", "card", "rows"}, violations);
  if (!json.contains("schema") || json["schema"] != 1) {
    violations.push_back({"schema", "", "must be 1", "tune again with this version"});
  }
  if (!violations.empty()) {
    refuse(name, to_string(std::span<const Violation>(violations)));
  }
  for (const Json& row : json["rows"]) {
    table.rows.push_back(read_row(name, table.rows.size(), row));
  }
  check_order(name, table.rows);
  return table;
}

std::string to_json(const TuningTable& table) {
  std::vector<TunedRow> rows = table.rows;
  std::sort(rows.begin(), rows.end(),
            [](const TunedRow& left, const TunedRow& right) { return left.key < right.key; });
  std::vector<std::string> texts;
  for (const TunedRow& row : rows) {
    texts.push_back(row_to_json(row));
  }
  return fmt::format(
      "{{\n  \"schema\": 1,\n  \"device\": {},\n  \"card\": {},\n  \"rows\": [{}{}{}]\n}}\n",
      Json(table.device).dump(), Json(table.card).dump(), texts.empty() ? "" : "\n",
      fmt::join(texts, ",\n"), texts.empty() ? "" : "\n  ");
}

void remove_row(TuningTable& table, const TuningKey& key) {
  std::erase_if(table.rows, [&](const TunedRow& row) { return row.key == key; });
}

void replace_row(TuningTable& table, TunedRow row) {
  remove_row(table, row.key);
  const auto place = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const TunedRow& other) { return row.key < other.key; });
  table.rows.insert(place, std::move(row));
}

}  // namespace attnjit
