#include "attnjit/kernel_config.hpp"

#include <nlohmann/json.hpp>
#include <type_traits>

#include <fmt/format.h>

#include "kernel_template.hpp"

namespace attnjit {
namespace {

std::string describe_fields(const PagedDecodeConfig& config) {
  return fmt::format("{} {}/{} x{} page {} {} m{} n{} stages {} warps {}", to_string(config.dtype),
                     config.head_dim_qk, config.head_dim_v, config.q_per_kv, config.page_size,
                     to_string(config.mask), config.block_m, config.block_n, config.num_stages,
                     config.num_warps);
}

std::string describe_fields(const CombineConfig& config) {
  return fmt::format("{} {} warps {}", to_string(config.dtype), config.head_dim_v,
                     config.num_warps);
}

std::string describe_fields(const ScheduleConfig& config) {
  return fmt::format("n{} threads {}", config.block_n, config.num_threads);
}

}  // namespace

std::string_view to_string(KernelRole role) {
  switch (role) {
    case KernelRole::attention:
      return "attention";
    case KernelRole::combine:
      return "combine";
    case KernelRole::schedule:
      return "schedule";
  }
  return "";
}

KernelRole role_of(const KernelConfig& config) {
  return template_of(config).role;
}

std::string to_json(const KernelConfig& config) {
  nlohmann::ordered_json json;
  json["kernel"] = template_of(config).name;
  std::visit(
      [&](const auto& fields) {
        for_each_field(fields, [&](const char* name, const auto& member, const char*) {
          if constexpr (std::is_enum_v<std::decay_t<decltype(member)>>) {
            json[name] = to_string(member);
          } else {
            json[name] = member;
          }
        });
      },
      config);
  return json.dump();
}

std::string describe(const KernelConfig& config) {
  return std::visit(
      [&](const auto& fields) {
        return fmt::format("{} {}", template_of(config).name, describe_fields(fields));
      },
      config);
}

}  // namespace attnjit
