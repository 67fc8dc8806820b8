#include <attnjit/config_selection.hpp>
#include <attnjit/kernel_renderer.hpp>
#include <iostream>

int main() {
  const attnjit::TargetDevice device = attnjit::find_target_device("h100").value();
  const auto configs = attnjit::select_configs(attnjit::AttentionDescriptor{}, device);
  const auto library = attnjit::TemplateLibrary::embedded();
  std::cout << attnjit::render(configs.at(0), device, library).name << '\n';
}
