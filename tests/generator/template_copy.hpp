// A copy of templates/ that a test may damage; removed with the object.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "catch.hpp"

namespace attnjit::test {

class TemplateCopy {
 public:
  TemplateCopy() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "attnjit-templates-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    std::filesystem::copy(ATTNJIT_SOURCE_DIR "/templates", root_,
                          std::filesystem::copy_options::recursive);
  }
  ~TemplateCopy() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemplateCopy(const TemplateCopy&) = delete;
  TemplateCopy& operator=(const TemplateCopy&) = delete;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace attnjit::test
