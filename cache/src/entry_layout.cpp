#include "entry_layout.hpp"

namespace attnjit {

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::filesystem::path entry_path(const std::filesystem::path& directory, std::string_view digest) {
  return directory / entry_tree_name / digest.substr(0, shard_digits) / digest.substr(shard_digits);
}

std::filesystem::path lock_path(const std::filesystem::path& directory, std::string_view digest) {
  return directory / lock_tree_name / digest.substr(0, shard_digits);
}

}  // namespace attnjit
