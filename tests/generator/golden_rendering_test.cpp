// tests/golden/<template>/kernel_config.cuh: what the renderer writes for one representative call,
// byte for byte. ATTNJIT_UPDATE_GOLDEN=1 rewrites the files instead; review the difference.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"
#include "ragged_prefill.hpp"
#include "sparse_mla_descriptor.hpp"

namespace {

using namespace attnjit;

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool wants_update() {
  const char* variable = std::getenv("ATTNJIT_UPDATE_GOLDEN");
  return variable != nullptr && std::string_view(variable) == "1";
}

void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(ATTNJIT_SOURCE_DIR) / "tests/golden" / name / "kernel_config.cuh";
  if (wants_update()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  CHECK(read_text(path) == text);
}

// The first kernel of each template.
TEST_CASE("the rendered config headers of latent decode are the recorded ones") {
  std::set<std::string> seen;
  for (const int heads : {16, 128}) {
    for (const char* card : {"h200", "a100"}) {
      const TargetDevice device = find_target_device(card).value();
      for (const KernelConfig& config : configure_decode(test::latent_decode(heads), device, {})) {
        const RenderedKernel kernel = render(config, device, TemplateLibrary::embedded());
        if (seen.insert(kernel.name).second) {
          check_golden(kernel.name, render_config_header(config));
        }
      }
    }
  }
  CHECK(seen.size() == 5);
}

// Of an operation that is no decode.
void check_golden_of(const AttentionDescriptor& descriptor) {
  const TargetDevice device = find_target_device("h200").value();
  for (const KernelConfig& config : select_configs(descriptor, device)) {
    check_golden(render(config, device, TemplateLibrary::embedded()).name,
                 render_config_header(config));
  }
}

TEST_CASE("the rendered config headers of a prefill are the recorded ones") {
  check_golden_of(test::ragged_prefill(192, 128, 1));
}

TEST_CASE("the rendered config header of token-sparse attention is the recorded one") {
  check_golden_of(test::sparse_mla(Operation::sparse_mla_decode, 128));
}

TEST_CASE("the rendered config headers of a merge and of a cache write are the recorded ones") {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::merge_states;
  check_golden_of(descriptor);
  descriptor.operation = Operation::append_kv_cache;
  descriptor.dtype_kv = DataType::fp8_e4m3;
  check_golden_of(descriptor);
}

}  // namespace
