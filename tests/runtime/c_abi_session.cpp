#include "c_abi_session.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace attnjit::test {

MockDriver& fresh_mock_of_library() {
  setenv("ATTNJIT_LIBCUDA", ATTNJIT_MOCK_DRIVER, 1);
  void* const library = dlopen(ATTNJIT_MOCK_DRIVER, RTLD_NOW);
  if (library == nullptr) {
    throw std::runtime_error(dlerror());
  }
  const auto get =
      reinterpret_cast<decltype(&attnjit_mock_driver)>(dlsym(library, "attnjit_mock_driver"));
  *get() = MockDriver{};
  return *get();
}

void require_ok(attnjit_status status) {
  if (status != ATTNJIT_OK) {
    throw std::runtime_error(std::string(attnjit_status_name(status)) + ": " +
                             attnjit_last_message());
  }
}

attnjit_runtime_options session_options() {
  attnjit_runtime_options options = {};
  options.struct_size = sizeof options;
  options.cache_directory = ATTNJIT_C_ABI_CACHE;
  options.cache_max_bytes = std::uint64_t{256} << 20;
  return options;
}

CAbiSession::CAbiSession(const Change& change) : mock(fresh_mock_of_library()) {
  attnjit_runtime_options options = session_options();
  if (change) {
    change(options);
  }
  require_ok(attnjit_runtime_create(&options, &runtime));
}

CAbiSession::~CAbiSession() {
  attnjit_runtime_destroy(runtime);
}

attnjit_kernel CAbiSession::prepare(const char* descriptor, void* stream) {
  attnjit_kernel kernel = 0;
  require_ok(attnjit_prepare(runtime, descriptor, stream, &kernel));
  return kernel;
}

attnjit_plan CAbiSession::make_plan(const char* descriptor, int max_batch) {
  const attnjit_kernel kernel = prepare(descriptor);
  attnjit_plan_options options = {};
  options.struct_size = sizeof options;
  options.max_batch = max_batch;
  attnjit_plan plan = 0;
  require_ok(attnjit_plan_create(kernel, &options, &plan));
  require_ok(attnjit_kernel_release(kernel));
  return plan;
}

std::vector<std::string> CAbiSession::take_launched_kernels() {
  std::vector<std::string> kernels;
  for (const Launch& launch : mock.launches) {
    kernels.push_back(launch.kernel);
  }
  mock.launches.clear();
  return kernels;
}

std::vector<std::string> violated_fields() {
  std::vector<std::string> fields;
  for (const auto& violation : nlohmann::json::parse(attnjit_last_violations())) {
    const bool is_whole = violation.size() == 4 && violation.at("value").is_string() &&
                          !violation.at("rule").get<std::string>().empty() &&
                          !violation.at("fix").get<std::string>().empty();
    if (!is_whole) {
      throw std::runtime_error("no violation: " + violation.dump());
    }
    fields.push_back(violation.at("field").get<std::string>());
  }
  return fields;
}

bool last_message_has(const std::string& part) {
  return std::string(attnjit_last_message()).find(part) != std::string::npos;
}

}  // namespace attnjit::test
