#include "kernel_identity.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernel_facts.hpp"
#include "key_sections.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// Written for each kernel from its config and slots.
bool is_rendered(const std::string& header) {
  return header == "kernel_config.cuh" || header == "device/user_slots.cuh";
}

const std::string* find_value(const Fields& fields, const std::string& name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

// Of named values in both orders: changed or only left, then only right.
void compare_fields(const std::string& prefix, const Fields& left, const Fields& right,
                    std::vector<Difference>& differences) {
  for (const auto& [name, value] : left) {
    const std::string* other = find_value(right, name);
    if (other == nullptr || *other != value) {
      differences.push_back({prefix + name, value, other == nullptr ? "" : *other});
    }
  }
  for (const auto& [name, value] : right) {
    if (find_value(left, name) == nullptr) {
      differences.push_back({prefix + name, "", value});
    }
  }
}

void compare_options(const KernelIdentity& left, const KernelIdentity& right,
                     std::vector<Difference>& differences) {
  const auto contains = [](const std::vector<std::string>& options, const std::string& option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  const auto is_target = [](const std::string& option) {
    return option.starts_with("--gpu-architecture=");  // told as the target
  };
  for (const std::string& option : left.options) {
    if (!is_target(option) && !contains(right.options, option)) {
      differences.push_back({"option", option, ""});
    }
  }
  for (const std::string& option : right.options) {
    if (!is_target(option) && !contains(left.options, option)) {
      differences.push_back({"option", "", option});
    }
  }
}

Fields headers_of(const RenderedKernel& kernel) {
  Fields headers;
  for (const SourceFile& header : kernel.headers) {
    if (!is_rendered(header.name)) {
      headers.emplace_back(header.name, header.text);
    }
  }
  return headers;
}

// Without the banner, which names target, config and templates.
std::string_view code_of(const std::string& source) {
  std::string_view rest = source;
  while (rest.starts_with("//") || rest.starts_with("\n")) {
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  return rest;
}

}  // namespace

std::optional<KernelIdentity> identify_kernel(std::string_view key_text,
                                              const std::string& config) {
  auto kernel = parse_kernel_key_text(key_text);
  const auto sections = split_key_text(key_text);
  if (!kernel || !sections) {
    return std::nullopt;
  }
  KernelIdentity identity{.kernel = std::move(*kernel), .toolchain = "", .options = {}};
  identity.kernel.config = config;
  for (const KeySection& section : *sections) {
    if (section.tag == "toolchain") {
      identity.toolchain = section.bytes;
    } else if (section.tag == "option") {
      identity.options.emplace_back(section.bytes);
    }
  }
  return identity;
}

std::vector<Difference> find_differences(const KernelIdentity& left, const KernelIdentity& right) {
  std::vector<Difference> differences;
  if (left.toolchain != right.toolchain) {
    differences.push_back({"toolchain", left.toolchain, right.toolchain});
  }
  if (left.kernel.arch != right.kernel.arch) {
    differences.push_back({"target", left.kernel.arch, right.kernel.arch});
  }
  compare_options(left, right, differences);
  compare_fields("config ", config_fields(left.kernel.config), config_fields(right.kernel.config),
                 differences);
  if (code_of(left.kernel.source) != code_of(right.kernel.source)) {
    differences.push_back({"source", left.kernel.source, right.kernel.source});
  }
  compare_fields("header ", headers_of(left.kernel), headers_of(right.kernel), differences);
  return differences;
}

std::string describe(const Difference& difference) {
  const bool is_text = difference.what == "source" || difference.what.starts_with("header ");
  if (is_text && !difference.left.empty() && !difference.right.empty()) {
    return difference.what + " differs";
  }
  const auto shown = [&](const std::string& value) -> std::string {
    return value.empty() ? "none" : is_text ? "there is one" : value;
  };
  return fmt::format("{}: {}, there {}", difference.what, shown(difference.left),
                     shown(difference.right));
}

}  // namespace attnjit
