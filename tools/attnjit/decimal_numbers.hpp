// Whole numbers on the command line are decimal: the parser alone would read 0x40 and 010 as C
// does.
#pragma once

namespace CLI {
class App;
}

namespace attnjit {

// For every option of every subcommand of `app` that takes whole numbers.
void require_decimal_numbers(CLI::App& app);

}  // namespace attnjit
