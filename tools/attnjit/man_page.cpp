#include "man_page.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit {
namespace {

// Text as roff prints it as it stands.
std::string roff(std::string_view text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char character : text) {
    escaped += character == '\\' ? "\\e" : character == '-' ? "\\-" : std::string(1, character);
  }
  return escaped;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

std::string synopsis(const CommandSyntax& command) {
  std::string line = fmt::format("{} {}", bold("attnjit"), bold(command.name));
  for (const OptionSyntax& positional : command.positionals) {
    line += positional.is_required ? " " + italic(positional.names.front())
                                   : " [" + italic(positional.names.front()) + "]";
  }
  return line + " [" + italic("options") + "]";
}

std::string option_entry(const OptionSyntax& option, bool is_positional) {
  std::string term;
  for (const std::string& name : option.names) {
    term += (term.empty() ? "" : ", ") + (is_positional ? italic(name) : bold(name));
  }
  if (!is_positional && !option.value.empty()) {
    term += " " + italic(option.takes_list ? option.value + ",..." : option.value);
  }
  std::string text = roff(option.description);
  if (!is_positional && !option.values.empty()) {
    text += fmt::format(". One of {}", roff(fmt::format("{}", fmt::join(option.values, ", "))));
  }
  if (!option.value.empty() && !option.default_text.empty()) {
    text += fmt::format(" (default {})", roff(option.default_text));
  }
  return fmt::format(".TP\n{}\n{}.\n", term, text);
}

constexpr std::string_view tail = R"(.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
failed: a kernel does not compile, a check fails, an entry is damaged, a file cannot be written
.TP
.B 2
wrong usage: an unknown option, preset, target or key
.TP
.B 3
no kernel serves the descriptor
.TP
.B 5
the toolchain or the driver is missing, or does not know the target
.TP
.B 130
interrupted by Ctrl\-C
.SH ENVIRONMENT
.TP
.B ATTNJIT_CACHE_DIR
The kernel cache, unless \fB\-\-cache\-dir\fR names one; else \fIattnjit\fR in XDG_CACHE_HOME or in
\fI.cache\fR of the home directory.
.TP
.B ATTNJIT_NVRTC
libnvrtc, or the directory that holds it and its builtins.
.TP
.B ATTNJIT_TEMPLATES
A directory that templates are read from, in place of those built in.
.TP
.BR CUDA_HOME ", " CUDA_PATH
A CUDA toolkit: NVRTC and the disassembler are looked for there.
.SH OUTPUT
Results go to standard output, messages and progress to standard error. With \fB\-\-json\fR the
result is one document on one line, whose member \fIschema\fR is 1.
)";

}  // namespace

std::string man_page(const ProgramSyntax& program, const std::string& version) {
  std::string page = fmt::format(
      ".TH ATTNJIT 1 \"\" \"attnjit {}\" \"User Commands\"\n.SH NAME\nattnjit \\- {}\n"
      ".SH SYNOPSIS\n",
      roff(version), roff(program.description));
  for (const CommandSyntax& command : program.commands) {
    page +=
        (command.name == program.commands.front().name ? "" : ".br\n") + synopsis(command) + "\n";
  }
  page +=
      ".SH DESCRIPTION\nMakes, keeps, shows and measures attention kernels. A model is the path of "
      "a "
      "config.json or the\nname of a preset; a descriptor is JSON text or the path of a file that "
      "holds it; a key is what\nnames a kernel in the cache, cut to its first six digits or more; "
      "a "
      "target is an architecture or\na card.\n.SH COMMANDS\n";
  for (const CommandSyntax& command : program.commands) {
    page += fmt::format(".SS {}\n{}.\n", roff(command.name), roff(command.description));
    for (const OptionSyntax& positional : command.positionals) {
      page += option_entry(positional, true);
    }
    for (const OptionSyntax& option : command.options) {
      page += option_entry(option, false);
    }
  }
  return page + std::string(tail);
}

}  // namespace attnjit
