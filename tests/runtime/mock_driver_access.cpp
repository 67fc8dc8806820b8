#include "dynamic_library.hpp"
#include "mock_driver.hpp"

namespace attnjit::test {

const char* const mock_driver_path = ATTNJIT_MOCK_DRIVER;

MockDriver& fresh_mock_driver() {
  const DynamicLibrary library(mock_driver_path);
  decltype(&attnjit_mock_driver) get = nullptr;
  library.bind(get, "attnjit_mock_driver");
  *get() = MockDriver{};
  return *get();
}

}  // namespace attnjit::test
