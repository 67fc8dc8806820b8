#include "stored_kernel_json.hpp"

#include "kernel_facts.hpp"

namespace attnjit {

using Json = nlohmann::ordered_json;

Json to_json(const StoredKernel& stored) {
  Json kernel = {{"key", stored.digest},
                 {"name", stored.metadata.name},
                 {"arch", stored.metadata.arch},
                 {"config", config_json(stored.metadata.config)},
                 {"toolchain", stored.metadata.toolchain}};
  kernel.update(resources_json(stored.metadata));
  kernel["cubin_bytes"] = stored.cubin_bytes;
  kernel["compile_milliseconds"] = stored.metadata.compile_milliseconds;
  return kernel;
}

Json to_json(const std::vector<DamagedEntry>& damaged) {
  Json entries = Json::array();
  for (const DamagedEntry& entry : damaged) {
    entries.push_back(
        {{"key", entry.digest}, {"reason", to_string(entry.reason)}, {"detail", entry.detail}});
  }
  return entries;
}

}  // namespace attnjit
