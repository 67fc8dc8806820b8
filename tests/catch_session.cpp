// Catch2 v2 is header-only and compiles its implementation here; v3 links its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "catch_session.hpp"

#include "catch.hpp"

namespace attnjit::testing {

int run_catch_session(int argument_count, char** arguments) {
  return Catch::Session().run(argument_count, arguments);
}

}  // namespace attnjit::testing
