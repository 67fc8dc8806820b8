#include "attnjit/kernel_metadata.hpp"

#include <nlohmann/json.hpp>

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

Json to_object(const KernelResources& resources) {
  return {{"registers", resources.registers},
          {"barriers", resources.barriers},
          {"stack_frame_bytes", resources.stack_frame_bytes},
          {"spill_store_bytes", resources.spill_store_bytes},
          {"spill_load_bytes", resources.spill_load_bytes},
          {"static_shared_bytes", resources.static_shared_bytes}};
}

KernelResources parse_resources_object(const Json& object) {
  return {.registers = object.at("registers"),
          .barriers = object.at("barriers"),
          .stack_frame_bytes = object.at("stack_frame_bytes"),
          .spill_store_bytes = object.at("spill_store_bytes"),
          .spill_load_bytes = object.at("spill_load_bytes"),
          .static_shared_bytes = object.at("static_shared_bytes")};
}

// A config is JSON except where a caller rendered a source of its own and wrote something else.
Json config_value(const std::string& config) {
  Json parsed = Json::parse(config, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : Json(config);
}

std::string config_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

KernelMetadata describe(const RenderedKernel& kernel, const CompiledKernel& compiled,
                        std::string_view toolchain_identity) {
  return {.name = kernel.name,
          .entry = kernel.entry,
          .arch = kernel.arch,
          .config = kernel.config,
          .toolchain = std::string(toolchain_identity),
          .num_threads = kernel.num_threads,
          .shared_memory_bytes = kernel.shared_memory_bytes,
          .resources = compiled.resources,
          .notes = compiled.notes,
          .compile_milliseconds = compiled.milliseconds};
}

std::string to_json(const KernelMetadata& metadata) {
  const Json object = {{"kernel", metadata.name},
                       {"entry", metadata.entry},
                       {"arch", metadata.arch},
                       {"config", config_value(metadata.config)},
                       {"toolchain", metadata.toolchain},
                       {"num_threads", metadata.num_threads},
                       {"shared_memory_bytes", metadata.shared_memory_bytes},
                       {"resources", to_object(metadata.resources)},
                       {"notes", metadata.notes},
                       {"compile_milliseconds", metadata.compile_milliseconds}};
  // An environment variable can bring bytes that are no UTF-8 into the toolchain identity.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<KernelMetadata> parse_kernel_metadata(std::string_view json) {
  try {
    const Json object = Json::parse(json);
    return KernelMetadata{.name = object.at("kernel"),
                          .entry = object.at("entry"),
                          .arch = object.at("arch"),
                          .config = config_text(object.at("config")),
                          .toolchain = object.at("toolchain"),
                          .num_threads = object.at("num_threads"),
                          .shared_memory_bytes = object.at("shared_memory_bytes"),
                          .resources = parse_resources_object(object.at("resources")),
                          .notes = object.at("notes").get<std::vector<std::string>>(),
                          .compile_milliseconds = object.at("compile_milliseconds")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace attnjit
