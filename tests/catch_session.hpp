// Runs the test cases of one executable. Catch2's implementation is compiled behind it, once.
#pragma once

namespace attnjit::testing {

// Catch2's command line in, exit status out.
int run_catch_session(int argument_count, char** arguments);

}  // namespace attnjit::testing
