// The mock's state for programs that are not C++ and cannot read its structs.
#include "mock_driver.hpp"

extern "C" void attnjit_mock_set_capturing(int is_capturing) {
  attnjit_mock_driver()->is_capturing = is_capturing != 0;
}

extern "C" int attnjit_mock_launch_count() {
  return static_cast<int>(attnjit_mock_driver()->launches.size());
}

// The stream of the last launch.
extern "C" void* attnjit_mock_last_stream() {
  return attnjit_mock_driver()->launches.back().config.hStream;
}
