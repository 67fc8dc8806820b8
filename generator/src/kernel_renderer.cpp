#include "attnjit/kernel_renderer.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "attnjit/user_expression.hpp"
#include "enum_names.hpp"
#include "kernel_template.hpp"
#include "template_slots.hpp"

namespace attnjit {
namespace {

constexpr std::string_view config_header = "kernel_config.cuh";

std::string_view type_name(bool) {
  return "bool";
}
std::string_view type_name(int) {
  return "int";
}
std::string_view type_name(DataType) {
  return "DataType";
}
std::string_view type_name(ValueSource) {
  return "ValueSource";
}
std::string_view type_name(MaskKind) {
  return "MaskKind";
}
std::string_view type_name(ScoreModifier) {
  return "ScoreModifier";
}
std::string_view type_name(ScaleGrain) {
  return "ScaleGrain";
}
std::string_view type_name(KvEncoding) {
  return "KvEncoding";
}
std::string_view type_name(KvCopy) {
  return "KvCopy";
}
std::string_view type_name(PartialOrder) {
  return "PartialOrder";
}
std::string_view type_name(const MaskFormula&) {
  return "MaskClauses";
}

// "{2, {mask_set(MaskKind::causal, MaskKind::document), mask_set(MaskKind::prefix_lm)}}"
std::string clauses_literal(const MaskFormula& formula) {
  std::vector<std::string> sets;
  for (const MaskSet clause : formula.clauses) {
    std::vector<std::string> kinds;
    for (const std::string_view name : enumerator_names<MaskKind>()) {
      if ((clause & mask_bit(parse_enumerator<MaskKind>(name).value())) != 0) {
        kinds.push_back(fmt::format("MaskKind::{}", name));
      }
    }
    sets.push_back(fmt::format("mask_set({})", fmt::join(kinds, ", ")));
  }
  return fmt::format("{{{}, {{{}}}}}", sets.size(), fmt::join(sets, ", "));
}

template <typename Value>
std::string literal(const char* name, const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    if (to_string(value).empty()) {
      throw std::invalid_argument(
          fmt::format("{} = {}: must be an enumerator of {}; fix: do not cast integers to it", name,
                      static_cast<int>(value), type_name(value)));
    }
    return fmt::format("{}::{}", type_name(value), to_string(value));
  } else if constexpr (std::is_same_v<Value, MaskFormula>) {
    return clauses_literal(value);
  } else {
    return fmt::format("{}", value);
  }
}

// The names that `text` includes with quotes, in order.
std::vector<std::string> includes_of(std::string_view text) {
  constexpr std::string_view directive = "#include \"";
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(directive)) {
      const std::string_view rest = line.substr(directive.size());
      names.emplace_back(rest.substr(0, rest.find('"')));
    }
    begin = end + 1;
  }
  return names;
}

using Headers = std::map<std::string, std::string>;

// What goes into the slots of a config's template. Throws std::invalid_argument for an expression
// that could reach beyond its slot.
SlotExpressions slot_expressions(const KernelConfig& config) {
  SlotExpressions slots = {{"mask_predicate", ""}, {"score_modifier", ""}};
  const auto set = [&](std::string_view slot, std::string_view field, const std::string& text) {
    const std::string fault = text.empty() ? "" : find_expression_fault(text);
    if (!fault.empty()) {
      throw std::invalid_argument(
          fmt::format("{} = \"{}\": {}; fix: validate the descriptor that it comes from", field,
                      shown_text(text), fault));
    }
    slots.find(slot)->second = text;
  };
  if (const auto* prefill = std::get_if<PrefillConfig>(&config)) {
    set("mask_predicate", "mask_expression", prefill->mask_expression);
    set("score_modifier", "score_expression", prefill->score_expression);
  }
  return slots;
}

// Fills the slots of the template and its headers; throws TemplateError where there is none for an
// expression.
void fill_all_slots(const KernelConfig& config, std::string_view path, std::string& text,
                    Headers& headers) {
  const SlotExpressions expressions = slot_expressions(config);
  SlotExpressions unused = expressions;
  text = fill_slots(path, text, expressions, unused);
  for (auto& [name, header] : headers) {
    header = fill_slots(name, header, expressions, unused);
  }
  for (const auto& [name, expression] : unused) {
    if (!expression.empty()) {
      throw TemplateError(
          fmt::format("template {} has no slot {}; fix: add it, as \"How a template varies\" of "
                      "templates/README.md says, or leave the descriptor's expression out",
                      path, name));
    }
  }
}

// Adds to `headers` whatever `text` includes, directly or not.
void collect_headers(std::string_view text, const TemplateLibrary& library, Headers& headers) {
  for (const std::string& name : includes_of(text)) {
    if (!headers.contains(name)) {
      const std::string& header = library.text(name);
      headers.emplace(name, header);
      collect_headers(header, library, headers);
    }
  }
}

std::string banner(const KernelConfig& config, const TargetDevice& device,
                   const TemplateLibrary& library, std::string_view path) {
  return fmt::format(
      "// Generated by attnjit {}. Template {} of library {}.\n"
      "// Target: {}\n"
      "// Config: {}\n",
      ATTNJIT_VERSION, path, library.digest(), device.arch, to_json(config));
}

// The arch becomes part of the source and of the compiler's options.
void check_arch(std::string_view arch) {
  const bool is_name = !arch.empty() && std::all_of(arch.begin(), arch.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
  });
  if (!is_name) {
    throw std::invalid_argument(
        fmt::format("arch = \"{}\": must be lower-case letters, digits and underscores; fix: give "
                    "one as NVRTC names it, such as sm_90a",
                    shown_text(arch)));
  }
}

RenderedKernel assemble(std::string_view entry, std::string source, const TargetDevice& device,
                        Headers&& headers) {
  RenderedKernel kernel;
  kernel.name = entry;
  kernel.entry = entry;
  kernel.arch = device.arch;
  kernel.source = std::move(source);
  for (auto& [name, header] : headers) {
    kernel.headers.push_back({name, std::move(header)});
  }
  kernel.config = "{}";
  return kernel;
}

}  // namespace

std::string render_config_header(const KernelConfig& config) {
  std::string text = fmt::format(
      "// The constants of one {} kernel.\n#pragma once\n\n"
      "#include \"device/config_types.cuh\"\n\nnamespace config {{\n",
      template_of(config).name);
  std::visit(
      [&](const auto& fields) {
        for_each_field(fields, [&](const char* name, const auto& value, const char* comment) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            return;  // code, which goes into a slot
          } else {
            text += fmt::format("constexpr {} {} = {};  // {}\n", type_name(value), name,
                                literal(name, value), comment);
          }
        });
      },
      config);
  return text + "}  // namespace config\n";
}

RenderedKernel render(const KernelConfig& config, const TargetDevice& device,
                      const TemplateLibrary& library) {
  const KernelTemplate shape = template_of(config);
  const std::string path = fmt::format("kernels/{}.cu", shape.name);
  std::string text = library.text(path);
  check_arch(device.arch);
  Headers headers;
  headers.emplace(config_header, render_config_header(config));
  collect_headers(headers.at(std::string(config_header)), library, headers);
  collect_headers(text, library, headers);
  fill_all_slots(config, path, text, headers);

  RenderedKernel kernel =
      assemble(shape.name,
               banner(config, device, library, path) + fmt::format("#line 1 \"{}\"\n", path) + text,
               device, std::move(headers));
  kernel.config = to_json(config);
  kernel.num_threads = shape.num_threads;
  kernel.shared_memory_bytes = shape.shared_memory_bytes;
  return kernel;
}

RenderedKernel render_source(std::string_view entry, std::string_view source,
                             const TargetDevice& device, const TemplateLibrary& library) {
  check_arch(device.arch);
  Headers headers;
  collect_headers(source, library, headers);
  return assemble(entry, std::string(source), device, std::move(headers));
}

std::string flatten(const RenderedKernel& kernel) {
  std::string text = kernel.source;
  for (const SourceFile& header : kernel.headers) {
    text += fmt::format("\n// ---- {} ----\n{}", header.name, header.text);
  }
  return text;
}

}  // namespace attnjit
