#include "attnjit/template_library.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "attnjit/embedded_file.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_templates;

namespace {

using Files = std::map<std::string, std::string, std::less<>>;

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw TemplateError(
      fmt::format("template {} cannot be read; fix: give a complete templates/ directory (by "
                  "--templates, the runtime's options or ATTNJIT_TEMPLATES), or none",
                  path.string()));
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  // Before it is opened: a FIFO would wait for a writer.
  if (!std::filesystem::is_regular_file(path, error)) {
    refuse(path);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    refuse(path);
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_device_code(const std::filesystem::path& path) {
  const std::filesystem::path extension = path.extension();
  return extension == ".cu" || extension == ".cuh" || extension == ".h";
}

// The device code anywhere under `root`.
std::vector<std::filesystem::path> find_device_code(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> paths;
  // The error does not name the folder: it is the one last visited, which was to be entered next.
  std::filesystem::path visited = root;
  try {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      visited = entry.path();
      if (is_device_code(visited)) {
        paths.push_back(visited);
      }
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw TemplateError(fmt::format(
        "template directory {} cannot be searched: {}; fix: make all its folders readable, or "
        "give another (by --templates, the runtime's options or ATTNJIT_TEMPLATES)",
        visited.string(), error.code().message()));
  }
  return paths;
}

// FNV-1a, 64 bits: a short name for people; cache keys cover the texts themselves.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    }
    state_ = (state_ ^ bytes.size()) * 0x100000001b3ULL;
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  unsigned long long state_ = 0xcbf29ce484222325ULL;
};

}  // namespace

TemplateLibrary::TemplateLibrary(Files files) : files_(std::move(files)) {}

TemplateLibrary TemplateLibrary::embedded() {
  Files files;
  for (const EmbeddedFile& file : embedded_templates) {
    files.emplace(file.name, file.text);
  }
  return TemplateLibrary(std::move(files));
}

TemplateLibrary TemplateLibrary::from_directory(const std::filesystem::path& root) {
  Files files;
  for (const EmbeddedFile& file : embedded_templates) {
    files.emplace(file.name, read_file(root / file.name));
  }
  for (const std::filesystem::path& path : find_device_code(root)) {
    files.try_emplace(path.lexically_relative(root).generic_string(), read_file(path));
  }
  return TemplateLibrary(std::move(files));
}

TemplateLibrary TemplateLibrary::open(const std::filesystem::path& root) {
  if (!root.empty()) {
    return from_directory(root);
  }
  const char* variable = std::getenv("ATTNJIT_TEMPLATES");
  return variable != nullptr && *variable != '\0' ? from_directory(variable) : embedded();
}

TemplateLibrary TemplateLibrary::extended(std::span<const EmbeddedFile> more) const {
  Files files = files_;
  for (const EmbeddedFile& file : more) {
    if (!files.emplace(file.name, file.text).second) {
      throw TemplateError(fmt::format("file {} is a template already; fix: rename it", file.name));
    }
  }
  return TemplateLibrary(std::move(files));
}

const std::string& TemplateLibrary::text(std::string_view name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    std::string names;
    for (const auto& [known, text] : files_) {
      names += fmt::format(" {}", known);
    }
    throw TemplateError(fmt::format("template {} does not exist; there are:{}", name, names));
  }
  return found->second;
}

std::string TemplateLibrary::digest() const {
  Fingerprint fingerprint;
  for (const auto& [name, text] : files_) {
    fingerprint.add(name);
    fingerprint.add(text);
  }
  return fingerprint.text();
}

}  // namespace attnjit
