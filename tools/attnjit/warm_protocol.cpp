#include "warm_protocol.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "attnjit/kernel_config_json.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

std::string to_line(const Json& json) {
  // File names in messages need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The enumerator of that name: they run from 0 without gaps, and have no name past the last.
template <typename Enum>
std::optional<Enum> find_enumerator(std::string_view name) {
  for (int i = 0; !to_string(static_cast<Enum>(i)).empty(); ++i) {
    if (to_string(static_cast<Enum>(i)) == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

Json kernel_to_json(const WarmedKernel& kernel) {
  Json json = {{"state", to_string(kernel.state)},
               {"key", kernel.key},
               {"metadata", to_json(kernel.metadata)},
               {"cubin_bytes", kernel.cubin_bytes},
               {"problem", kernel.problem}};
  if (kernel.miss) {
    json["miss"] = to_string(*kernel.miss);
  }
  return json;
}

std::optional<WarmedKernel> kernel_from_json(const Json& json) {
  const auto state = find_enumerator<WarmState>(json.at("state").get<std::string>());
  auto metadata = parse_kernel_metadata(json.at("metadata").get<std::string>());
  if (!state || !metadata) {
    return std::nullopt;
  }
  WarmedKernel kernel{.state = *state,
                      .key = json.at("key"),
                      .metadata = std::move(*metadata),
                      .cubin_bytes = json.at("cubin_bytes"),
                      .miss = std::nullopt,
                      .problem = json.at("problem")};
  if (json.contains("miss")) {
    kernel.miss = find_enumerator<MissReason>(json["miss"].get<std::string>());
  }
  return kernel;
}

}  // namespace

std::string_view to_string(WorkerEventKind kind) {
  switch (kind) {
    case WorkerEventKind::ready:
      return "ready";
    case WorkerEventKind::unfit:
      return "unfit";
    case WorkerEventKind::waiting:
      return "waiting";
    case WorkerEventKind::compiling:
      return "compiling";
    case WorkerEventKind::busy:
      return "busy";
    case WorkerEventKind::done:
      return "done";
  }
  return "";
}

std::string job_line(const KernelJob& job, IfBusy if_busy) {
  return to_line({{"arch", job.target.arch},
                  {"config", Json::parse(to_json(job.config))},
                  {"waits", if_busy == IfBusy::waits}});
}

GivenJob parse_job(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    KernelJob job{.config = kernel_config_from_json(json.at("config").dump()),
                  .target = {},
                  .uses = {},
                  .traced_key = ""};
    job.target.arch = json.at("arch");
    const bool waits = json.at("waits");
    return {std::move(job), waits ? IfBusy::waits : IfBusy::hands_back};
  } catch (const Json::exception& error) {
    throw ConfigJsonError(std::string("job: is none of `attnjit warm`: ") + error.what());
  }
}

std::string event_line(const WorkerEvent& event) {
  Json json = {{"event", to_string(event.kind)}};
  if (event.kind == WorkerEventKind::waiting || event.kind == WorkerEventKind::unfit) {
    json["message"] = event.message;
  } else if (event.kind == WorkerEventKind::done) {
    json["kernel"] = kernel_to_json(event.kernel);
  }
  return to_line(json);
}

std::optional<WorkerEvent> parse_event(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    const auto kind = find_enumerator<WorkerEventKind>(json.at("event").get<std::string>());
    if (!kind) {
      return std::nullopt;
    }
    WorkerEvent event{.kind = *kind, .message = json.value("message", ""), .kernel = {}};
    if (*kind == WorkerEventKind::done) {
      auto kernel = kernel_from_json(json.at("kernel"));
      if (!kernel) {
        return std::nullopt;
      }
      event.kernel = std::move(*kernel);
    }
    return event;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace attnjit
