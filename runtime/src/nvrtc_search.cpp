#include "nvrtc_search.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> sonames = {"libnvrtc.so.13", "libnvrtc.so.12"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Subdirectories of `parent` whose name starts with `prefix`, newest name first.
std::vector<fs::path> subdirectories(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    if (entry.path().filename().string().starts_with(prefix) && entry.is_directory(ignored)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

// Appends the newest libnvrtc of `directory`; false if there is none.
bool add_directory(std::vector<NvrtcCandidate>& candidates, const std::string& origin,
                   const fs::path& directory) {
  std::error_code ignored;
  for (const char* soname : sonames) {
    if (fs::exists(directory / soname, ignored)) {
      candidates.push_back({origin, directory / soname, ""});
      return true;
    }
  }
  return false;
}

void add_named(std::vector<NvrtcCandidate>& candidates, const std::string& origin,
               const fs::path& named) {
  std::error_code ignored;
  if (!fs::exists(named, ignored)) {
    candidates.push_back({origin, named, "no such file or directory"});
  } else if (!fs::is_directory(named, ignored)) {
    candidates.push_back({origin, named, ""});
  } else if (!add_directory(candidates, origin, named)) {
    candidates.push_back({origin, named, "holds neither libnvrtc.so.13 nor libnvrtc.so.12"});
  }
}

void add_toolkit(std::vector<NvrtcCandidate>& candidates, const std::string& origin,
                 const fs::path& root) {
  bool found = false;
  for (const char* folder :
       {"targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib64", "lib"}) {
    found = found || add_directory(candidates, origin, root / folder);
  }
  if (!found) {
    candidates.push_back({origin, root, "no libnvrtc.so.13 or .12 in its library folders"});
  }
}

void add_toolkits(std::vector<NvrtcCandidate>& candidates) {
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(variable); !root.empty()) {
      add_toolkit(candidates, std::string("$") + variable, root);
    }
  }
  add_toolkit(candidates, "CUDA toolkit", "/usr/local/cuda");
  for (const fs::path& root : subdirectories("/usr/local", "cuda-")) {
    add_toolkit(candidates, "CUDA toolkit", root);
  }
}

// The NVRTC wheels among Python packages: <packages>/nvidia/*/lib.
bool add_packages(std::vector<NvrtcCandidate>& candidates, const std::string& origin,
                  const fs::path& packages) {
  bool found = false;
  for (const fs::path& package : subdirectories(packages / "nvidia", "cu")) {
    found = add_directory(candidates, origin, package / "lib") || found;
  }
  return found;
}

// Those of one Python prefix: <prefix>/lib/python3.*/site-packages.
bool add_wheels(std::vector<NvrtcCandidate>& candidates, const std::string& origin,
                const fs::path& prefix) {
  bool found = false;
  for (const fs::path& python : subdirectories(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      found = add_packages(candidates, origin, python / packages) || found;
    }
  }
  return found;
}

// Where pip put both attnjit and NVRTC, environments need not be activated: the library is in
// <packages>/attnjit/, the command in <prefix>/bin/.
void add_neighbours(std::vector<NvrtcCandidate>& candidates, const fs::path& module) {
  const fs::path root = module.parent_path().parent_path();
  if (!root.empty()) {
    add_packages(candidates, "Python packages", root);
    add_wheels(candidates, "Python packages", root);
  }
}

void add_python(std::vector<NvrtcCandidate>& candidates) {
  const std::string home = environment("HOME");
  const std::array<std::pair<const char*, fs::path>, 5> prefixes = {{
      {"$VIRTUAL_ENV", environment("VIRTUAL_ENV")},
      {"$CONDA_PREFIX", environment("CONDA_PREFIX")},
      {"Python packages", home.empty() ? fs::path() : fs::path(home) / ".local"},
      {"Python packages", "/usr/local"},
      {"Python packages", "/usr"},
  }};
  for (const auto& [origin, prefix] : prefixes) {
    if (prefix.empty()) {
      continue;
    }
    const bool in_prefix = add_directory(candidates, origin, prefix / "lib");
    if (!add_wheels(candidates, origin, prefix) && !in_prefix) {
      candidates.push_back({origin, prefix, "no NVRTC wheel (nvidia/*/lib/libnvrtc.so.*)"});
    }
  }
}

}  // namespace

fs::path attnjit_module() {
  Dl_info symbol;
  link_map* module = nullptr;
  const auto* const self = reinterpret_cast<const void*>(&attnjit_module);
  if (dladdr1(self, &symbol, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) {
    return {};
  }
  std::error_code ignored;
  const std::string name = module->l_name;  // empty: the program itself
  return name.empty() ? fs::read_symlink("/proc/self/exe", ignored) : fs::absolute(name, ignored);
}

std::vector<NvrtcCandidate> nvrtc_candidates(const fs::path& option, const fs::path& module) {
  std::vector<NvrtcCandidate> candidates;
  if (!option.empty()) {
    add_named(candidates, "the option nvrtc,", option);
    return candidates;
  }
  if (const std::string named = environment("ATTNJIT_NVRTC"); !named.empty()) {
    add_named(candidates, "$ATTNJIT_NVRTC", named);
    return candidates;
  }
  for (const char* soname : sonames) {
    candidates.push_back({"loader path", soname, ""});
  }
  add_toolkits(candidates);
  add_neighbours(candidates, module);
  add_python(candidates);
  return candidates;
}

}  // namespace attnjit
