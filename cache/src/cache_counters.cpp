#include "cache_counters.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry_file.hpp"
#include "entry_layout.hpp"
#include "file_descriptor.hpp"

// A record is a line: "attnjit-counters 1 records=1 hits=12 absent=3 … end\n", zeros left out. It
// is appended by one write, which O_APPEND keeps whole between processes.
namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view record_beginning = "attnjit-counters 1";
constexpr std::string_view record_end = " end";
constexpr std::string_view sum_name = "sum";
constexpr std::uint64_t lookups_between_flushes = 256;
constexpr std::uintmax_t bytes_worth_compacting = std::uintmax_t{64} << 10;
constexpr std::uintmax_t largest_records_file = std::uintmax_t{64} << 20;

std::vector<std::pair<std::string_view, std::uint64_t*>> named_fields(CacheStatistics& counts) {
  std::vector<std::pair<std::string_view, std::uint64_t*>> fields = {
      {"records", &counts.records},
      {"hits", &counts.hits},
      {"puts", &counts.puts},
      {"failed_puts", &counts.failed_puts},
      {"evictions", &counts.evictions},
      {"quarantined", &counts.quarantined},
      {"bytes_read", &counts.bytes_read},
      {"bytes_written", &counts.bytes_written},
      {"saved_microseconds", &counts.saved_microseconds}};
  for (std::size_t i = 0; i < miss_reasons.size(); ++i) {
    fields.emplace_back(to_string(miss_reasons[i]), &counts.misses[i]);
  }
  return fields;
}

std::string to_record(CacheStatistics counts) {
  std::string text(record_beginning);
  for (const auto& [name, value] : named_fields(counts)) {
    if (*value != 0) {
      text.append(" ").append(name).append("=").append(std::to_string(*value));
    }
  }
  return text.append(record_end).append("\n");
}

// "name=12" of a field that is known; a record of a later version may have others.
void read_field(std::string_view field, CacheStatistics& counts) {
  const std::size_t equals = std::min(field.find('='), field.size() - 1);
  for (const auto& [name, value] : named_fields(counts)) {
    if (name == field.substr(0, equals)) {
      std::from_chars(field.data() + equals + 1, field.data() + field.size(), *value);
    }
  }
}

// Nothing for a line that is no whole record.
CacheStatistics parse_record(std::string_view line) {
  CacheStatistics counts;
  if (!line.starts_with(record_beginning) || !line.ends_with(record_end)) {
    return counts;
  }
  line.remove_prefix(record_beginning.size());
  line.remove_suffix(record_end.size());
  while (!line.empty()) {
    line.remove_prefix(1);  // the blank
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) {
      read_field(line.substr(0, end), counts);
    }
    line.remove_prefix(end);
  }
  return counts;
}

CacheStatistics read_records(const fs::path& path) {
  CacheStatistics sum;
  std::error_code error;
  WholeFile file;
  if (fs::file_size(path, error) > largest_records_file || error ||
      !read_whole_file(path, file).ok()) {
    return sum;
  }
  std::string_view rest = file.bytes;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    sum += parse_record(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return sum;
}

std::vector<fs::path> record_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator file(directory / statistics_tree_name, error), end;
       !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (is_hex(name, shard_digits) || name == sum_name) {
      files.push_back(file->path());
    }
  }
  return files;
}

// Processes spread over 256 files, so that few write one at a time.
fs::path own_record_file(const fs::path& directory) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto process = static_cast<unsigned>(::getpid());
  return directory / statistics_tree_name /
         std::string({digits[(process >> 4) & 15], digits[process & 15]});
}

void append_record(const fs::path& path, std::string_view record, mode_t mode) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor file(retry_interrupted([&] { return ::open(path.c_str(), flags, mode); }));
  if (file.get() < 0) {
    return;
  }
  ::fchmod(file.get(), mode);  // refused where another user made it: it has its mode then
  // A short write leaves a line without its end, which no reader counts.
  [[maybe_unused]] const ssize_t count =
      retry_interrupted([&] { return ::write(file.get(), record.data(), record.size()); });
}

}  // namespace

CacheStatistics& CacheStatistics::operator+=(const CacheStatistics& other) {
  CacheStatistics addend = other;
  const auto sums = named_fields(*this);
  const auto addends = named_fields(addend);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    *sums[i].second += *addends[i].second;
  }
  return *this;
}

void CacheCounters::count_hit(std::uint64_t bytes) {
  hits_ += 1;
  bytes_read_ += bytes;
}

void CacheCounters::count_miss(MissReason reason) {
  misses_[static_cast<std::size_t>(reason)] += 1;
}

void CacheCounters::count_put(std::uint64_t bytes) {
  puts_ += 1;
  bytes_written_ += bytes;
}

void CacheCounters::count_failed_put() {
  failed_puts_ += 1;
}

void CacheCounters::count_evictions(std::uint64_t entries) {
  evictions_ += entries;
}

void CacheCounters::count_quarantined() {
  quarantined_ += 1;
}

void CacheCounters::count_saved(std::uint64_t microseconds) {
  saved_microseconds_ += microseconds;
}

bool CacheCounters::is_flush_due() {
  return (lookups_ += 1) % lookups_between_flushes == 0;
}

void CacheCounters::flush(const fs::path& directory, FileModes modes) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return;
  }
  CacheStatistics counts{.hits = hits_.exchange(0),
                         .puts = puts_.exchange(0),
                         .failed_puts = failed_puts_.exchange(0),
                         .evictions = evictions_.exchange(0),
                         .quarantined = quarantined_.exchange(0),
                         .bytes_read = bytes_read_.exchange(0),
                         .bytes_written = bytes_written_.exchange(0),
                         .saved_microseconds = saved_microseconds_.exchange(0)};
  for (std::size_t i = 0; i < misses_.size(); ++i) {
    counts.misses[i] = misses_[i].exchange(0);
  }
  if (counts == CacheStatistics{} ||
      !make_directories(directory / statistics_tree_name, modes).ok()) {
    return;
  }
  counts.records = has_record_.exchange(true) ? 0 : 1;
  append_record(own_record_file(directory), to_record(counts), modes.file);
}

CacheStatistics read_statistics(const fs::path& directory) {
  CacheStatistics sum;
  for (const fs::path& file : record_files(directory)) {
    sum += read_records(file);
  }
  return sum;
}

void compact_statistics(const fs::path& directory, FileModes modes) {
  const std::vector<fs::path> files = record_files(directory);
  std::uintmax_t bytes = 0;
  for (const fs::path& file : files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    bytes += error ? 0 : size;
  }
  if (bytes < bytes_worth_compacting) {
    return;
  }
  const CacheStatistics sum = read_statistics(directory);
  const fs::path target = directory / statistics_tree_name / sum_name;
  if (!publish_whole_file(target, to_record(sum), modes).ok()) {
    return;
  }
  for (const fs::path& file : files) {
    if (file != target) {
      std::error_code ignored;
      fs::remove(file, ignored);
    }
  }
}

}  // namespace attnjit
