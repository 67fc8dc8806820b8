#include "json_document.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

// The dump is what says whether a text is UTF-8.
bool is_utf8(const std::string& text) {
  try {
    [[maybe_unused]] const std::string dumped = Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string escaped(const std::string& text) {
  return is_utf8(text) ? text : shown_text(text, std::numeric_limits<std::size_t>::max());
}

void escape_texts(Json& value) {
  if (value.is_string()) {
    value = escaped(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (Json& element : value) {
      escape_texts(element);
    }
  }
}

}  // namespace

void set_path(Json& object, const std::string& name, const std::filesystem::path& path) {
  const std::string& bytes = path.native();
  object[name] = escaped(bytes);
  if (is_utf8(bytes)) {
    return;
  }
  std::string hex;
  for (const char byte : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  object[name + "_hex"] = hex;
}

std::string to_line(Json document) {
  escape_texts(document);
  return document.dump();
}

}  // namespace attnjit
