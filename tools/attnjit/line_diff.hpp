// Two texts -> a unified diff of their lines. Own, and not diff(1): what a container of a serving
// engine lacks, and what a library would bring for one page of code. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace attnjit {

// The hunks with three lines of context, headed by the names; empty if the texts are equal. The
// fewest changed lines, unless there are more than some thousands: then what lies between the
// first and the last change is replaced whole.
std::string unified_diff(std::string_view left_name, std::string_view left,
                         std::string_view right_name, std::string_view right);

}  // namespace attnjit
