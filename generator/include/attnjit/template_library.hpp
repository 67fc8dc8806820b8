// The device code of templates/: embedded in the binary, or read from a directory while a kernel is
// being written. Loaded whole, once; immutable and thread-safe afterwards.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "attnjit/embedded_file.hpp"

namespace attnjit {

class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TemplateLibrary {
 public:
  // The templates this binary was built with.
  static TemplateLibrary embedded();

  // All .cu, .cuh and .h files under `root` (the layout of templates/). Throws TemplateError if a
  // file that the binary embeds is missing there: the two sources are never mixed.
  static TemplateLibrary from_directory(const std::filesystem::path& root);

  // The directory if `root` is not empty, else $ATTNJIT_TEMPLATES if set, else the embedded ones.
  static TemplateLibrary open(const std::filesystem::path& root);

  // This library and `more` files, e.g. a test's own headers. Throws TemplateError if one of them
  // is already here.
  TemplateLibrary extended(std::span<const EmbeddedFile> more) const;

  // Text of a file by its path from the templates root, e.g. "device/mma_sm80.cuh". Throws
  // TemplateError naming the files there are.
  const std::string& text(std::string_view name) const;

  // 16 hex digits over all names and texts.
  std::string digest() const;

  const std::map<std::string, std::string, std::less<>>& files() const { return files_; }

 private:
  explicit TemplateLibrary(std::map<std::string, std::string, std::less<>> files);
  std::map<std::string, std::string, std::less<>> files_;
};

}  // namespace attnjit
