// Numbers on the command line are decimal and finite: the parser alone would read 0x40 and 010 as C
// does, and take nan for a number.
#pragma once

namespace CLI {
class App;
}

namespace attnjit {

// For every option of every subcommand of `app` that takes numbers.
void require_decimal_numbers(CLI::App& app);

}  // namespace attnjit
