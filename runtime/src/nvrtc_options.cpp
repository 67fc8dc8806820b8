#include "nvrtc_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace attnjit {
namespace {

constexpr NvrtcVersion first_with_cache_and_seed = {12, 9};

struct FirstVersion {
  int architecture;
  NvrtcVersion version;
};

// Release notes of NVRTC: the first version that compiles for each newer architecture.
constexpr std::array<FirstVersion, 6> first_versions = {{
    {100, {12, 8}},
    {101, {12, 8}},
    {103, {12, 9}},
    {110, {13, 0}},
    {120, {12, 8}},
    {121, {12, 9}},
}};

std::string needed_nvrtc(int architecture) {
  const auto* found =
      std::find_if(first_versions.begin(), first_versions.end(),
                   [&](const FirstVersion& first) { return first.architecture == architecture; });
  return found != first_versions.end()
             ? fmt::format("NVRTC {} or newer is needed", to_string(found->version))
             : "another NVRTC release is needed: a newer one for a newer GPU, 12.x for GPUs before "
               "sm_75";
}

}  // namespace

std::optional<NvrtcVersion> version_of_identity(std::string_view identity) {
  constexpr std::string_view prefix = "nvrtc ";
  if (!identity.starts_with(prefix)) {
    return std::nullopt;
  }
  NvrtcVersion version;
  const char* end = identity.data() + identity.size();
  const auto major = std::from_chars(identity.data() + prefix.size(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return std::nullopt;
  }
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  return minor.ec == std::errc() ? std::optional(version) : std::nullopt;
}

std::vector<std::string> nvrtc_options(std::string_view arch, NvrtcVersion version) {
  std::vector<std::string> options = {
      fmt::format("--gpu-architecture={}", arch),  // sm_, not compute_: a cubin, never PTX
      "-std=c++17",
      "-default-device",
      "--no-source-include",         // otherwise quoted includes are looked for in the caller's cwd
      "--modify-stack-limit=false",  // otherwise NVRTC changes the process's limits meanwhile
      verbose_assembler,
  };
  if (version >= first_with_cache_and_seed) {
    options.emplace_back("--no-cache");  // NVRTC's own cache lies in the driver's
  }
  return options;
}

std::optional<std::string> seed_option(std::string_view key_digest, NvrtcVersion version) {
  if (version < first_with_cache_and_seed) {
    return std::nullopt;
  }
  return fmt::format("--frandom-seed={}", key_digest);
}

std::optional<int> architecture_number(std::string_view arch) {
  constexpr std::string_view prefix = "sm_";
  if (!arch.starts_with(prefix)) {
    return std::nullopt;
  }
  int number = 0;
  const char* end = arch.data() + arch.size();
  const auto [rest, error] = std::from_chars(arch.data() + prefix.size(), end, number);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  const bool known_suffix = suffix.empty() || suffix == "a" || suffix == "f";
  return error == std::errc() && known_suffix ? std::optional(number) : std::nullopt;
}

std::optional<std::string> target_problem(std::string_view arch, const NvrtcLibrary& nvrtc) {
  const std::optional<int> number = architecture_number(arch);
  if (!number) {
    return fmt::format("target \"{}\" is not of the form sm_<number>, sm_<number>a or sm_<number>f",
                       arch);
  }
  const std::vector<int>& known = nvrtc.architectures;
  if (std::find(known.begin(), known.end(), *number) != known.end()) {
    return std::nullopt;
  }
  return fmt::format("NVRTC {} ({}) does not compile for {}, only for sm_{}; {}",
                     to_string(nvrtc.version), nvrtc.library.path().string(), arch,
                     fmt::join(known, ", sm_"), needed_nvrtc(*number));
}

}  // namespace attnjit
