// The main of test executables that need no GPU.
#include "catch_session.hpp"

int main(int argument_count, char** arguments) {
  return attnjit::testing::run_catch_session(argument_count, arguments);
}
