#include "attnjit/failed_source.hpp"

#include "entry_file.hpp"

#include <system_error>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

// A program that tries one broken expression after another must not fill the disk.
constexpr int most_sources = 64;

bool is_full(const fs::path& folder) {
  int sources = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++sources;
  }
  return sources >= most_sources;
}

}  // namespace

SavedSource save_failed_source(const fs::path& directory, std::string_view digest,
                               std::string_view source) {
  const fs::path folder = directory / "failed";
  const fs::path path = folder / (std::string(digest) + ".cu");
  std::error_code error;
  if (!fs::exists(path, error) && is_full(folder)) {
    return {{},
            folder.string() + " holds " + std::to_string(most_sources) +
                " sources; fix: delete what is no longer needed"};
  }
  const FileOutcome outcome = publish_whole_file(path, source, FileModes{});
  return outcome.ok() ? SavedSource{path, ""}
                      : SavedSource{{}, path.string() + ": " + outcome.message()};
}

}  // namespace attnjit
