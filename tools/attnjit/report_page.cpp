#include "report_page.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "attnjit/embedded_file.hpp"
#include "json_document.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_report;

namespace {

using Json = nlohmann::ordered_json;

std::string_view part(std::string_view name) {
  const auto file = std::find_if(embedded_report.begin(), embedded_report.end(),
                                 [&](const EmbeddedFile& each) { return each.name == name; });
  if (file == embedded_report.end()) {
    throw std::logic_error("the report's page has no part " + std::string(name));
  }
  return file->text;
}

// Text of a script element ends at the first "</script", and "<!--" begins a comment in it: neither
// can be written without this character.
std::string script_text(const Json& data) {
  const std::string text = to_line(data);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string report_page(const Json& data) {
  std::string_view rest = part("page.html");
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{style}}", std::string(part("page.css"))},
      {"{{data}}", script_text(data)},
      {"{{script}}", std::string(part("page.js"))},
  };
  std::string page;
  for (const auto& [slot, text] : parts) {
    const std::size_t at = rest.find(slot);
    if (at == std::string_view::npos) {
      throw std::logic_error("the report's page lacks " + std::string(slot));
    }
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + slot.size());
  }
  return page.append(rest);
}

}  // namespace attnjit
