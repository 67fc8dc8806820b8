#include "command_line.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace attnjit {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "attnjit-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary directory");
  }
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

CommandOutput run_attnjit(const std::string& arguments, const std::string& out_path) {
  const TemporaryDirectory directory;
  const std::filesystem::path own_out = directory.path() / "out";
  const std::string out = out_path.empty() ? own_out.string() : out_path;
  const std::filesystem::path err = directory.path() / "err";
  const int status = std::system(
      fmt::format("'{}' {} >'{}' 2>'{}'", ATTNJIT_COMMAND, arguments, out, err.string()).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out_path.empty() ? read_file(own_out) : "",
          read_file(err)};
}

}  // namespace attnjit
