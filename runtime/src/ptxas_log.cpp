#include "ptxas_log.hpp"

#include "text_lines.hpp"

#include <charconv>

namespace attnjit {
namespace {

// The number that stands before `unit` in `line`, e.g. 12 of "Used 12 registers"; 0 if none does.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t unit_start = line.find(unit);
  if (unit_start == std::string_view::npos) {
    return 0;
  }
  const std::size_t separator = line.find_last_not_of("0123456789", unit_start - 1);
  const std::size_t first = separator == std::string_view::npos ? 0 : separator + 1;
  int number = 0;
  std::from_chars(line.data() + first, line.data() + unit_start, number);
  return number;
}

void read_frame(std::string_view line, KernelResources& resources) {
  resources.stack_frame_bytes = number_before(line, " bytes stack frame");
  resources.spill_store_bytes = number_before(line, " bytes spill stores");
  resources.spill_load_bytes = number_before(line, " bytes spill loads");
}

void read_usage(std::string_view line, KernelResources& resources) {
  resources.registers = number_before(line, " registers");
  resources.barriers = number_before(line, " barriers");
  resources.static_shared_bytes = number_before(line, " bytes smem");
}

bool ends_with_name(std::string_view line, std::string_view prefix, std::string_view name) {
  const std::size_t start = line.find(prefix);
  return start != std::string_view::npos && line.substr(start + prefix.size()) == name;
}

}  // namespace

// "Compiling entry function 'k'" opens a kernel's part of the log; "Function properties for k" is
// followed by its stack frame (called functions have their own); "Used …" closes the part.
KernelResources parse_resources(std::string_view log, std::string_view entry) {
  const std::string quoted = "'" + std::string(entry) + "'";
  KernelResources resources;
  bool in_entry = false;
  bool frame_follows = false;
  for (const std::string_view line : split_lines(log)) {
    if (line.find("Compiling entry function") != std::string_view::npos) {
      in_entry = line.find(quoted) != std::string_view::npos;
    } else if (in_entry && frame_follows) {
      read_frame(line, resources);
    } else if (in_entry && line.find(": Used ") != std::string_view::npos) {
      read_usage(line, resources);
    }
    frame_follows = ends_with_name(line, "Function properties for ", entry);
  }
  return resources;
}

std::vector<std::string> serialization_notes(std::string_view log) {
  std::vector<std::string> notes;
  for (const std::string_view line : split_lines(log)) {
    if (line.find("(C75") != std::string_view::npos) {
      notes.emplace_back(line);
    }
  }
  return notes;
}

}  // namespace attnjit
