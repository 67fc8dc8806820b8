#include "kernel_facts.hpp"

#include <fmt/format.h>

#include "occupancy.hpp"

namespace attnjit {

using Json = nlohmann::ordered_json;

Json config_json(const std::string& config) {
  Json fields = Json::parse(config, nullptr, false);
  return fields.is_object() ? fields : Json(config);
}

std::vector<std::pair<std::string, std::string>> config_fields(const std::string& config) {
  std::vector<std::pair<std::string, std::string>> listed;
  const Json fields = config_json(config);
  if (!fields.is_object()) {
    return listed;
  }
  for (const auto& [name, value] : fields.items()) {
    if (name != "kernel") {
      listed.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return listed;
}

Json resources_json(const KernelMetadata& metadata) {
  const KernelResources& resources = metadata.resources;
  Json json = {{"registers", resources.registers},
               {"spill_store_bytes", resources.spill_store_bytes},
               {"spill_load_bytes", resources.spill_load_bytes},
               {"stack_frame_bytes", resources.stack_frame_bytes},
               {"static_shared_bytes", resources.static_shared_bytes},
               {"dynamic_shared_bytes", metadata.shared_memory_bytes},
               {"barriers", resources.barriers},
               {"threads", metadata.num_threads}};
  if (const auto occupancy = calculate_occupancy(metadata)) {
    json["occupancy"] = {{"blocks_per_sm", occupancy->blocks},
                         {"warps_per_sm", occupancy->warps},
                         {"most_warps_per_sm", occupancy->most_warps},
                         {"limit", occupancy->limit}};
  }
  return json;
}

std::vector<std::pair<std::string, std::string>> resource_facts(const KernelMetadata& metadata) {
  const KernelResources& resources = metadata.resources;
  const auto occupancy = calculate_occupancy(metadata);
  return {
      {"registers", fmt::format("{}", resources.registers)},
      {"spills", fmt::format("{}", spill_bytes(metadata))},
      {"stack", fmt::format("{}", resources.stack_frame_bytes)},
      {"static shared", fmt::format("{}", resources.static_shared_bytes)},
      {"dynamic shared", fmt::format("{}", metadata.shared_memory_bytes)},
      {"barriers", fmt::format("{}", resources.barriers)},
      {"threads", fmt::format("{}", metadata.num_threads)},
      {"blocks/SM", occupancy ? fmt::format("{}", occupancy->blocks) : "-"},
      {"warps/SM", occupancy ? fmt::format("{}/{}", occupancy->warps, occupancy->most_warps) : "-"},
      {"limit", occupancy ? std::string(occupancy->limit) : "-"}};
}

int spill_bytes(const KernelMetadata& metadata) {
  return metadata.resources.spill_store_bytes + metadata.resources.spill_load_bytes;
}

}  // namespace attnjit
