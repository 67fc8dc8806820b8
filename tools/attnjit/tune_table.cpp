#include "tune_table.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

// Lower-case words of letters and digits.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const unsigned char letter : text) {
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

// "rtx4090" of "NVIDIA GeForce RTX 4090"; not "h200" of "NVIDIA GH200 480GB".
bool names_card(const std::string& preset, const std::string& card) {
  const std::vector<std::string> words = words_of(card);
  for (std::size_t first = 0; first < words.size(); ++first) {
    std::string joined;
    for (std::size_t i = first; i < words.size() && joined.size() < preset.size(); ++i) {
      joined += words[i];
    }
    if (joined == preset) {
      return true;
    }
  }
  return false;
}

fs::path temporary_of(const fs::path& path) {
  return path.string() + ".new";
}

[[noreturn]] void refuse_writing(const fs::path& path) {
  throw std::runtime_error(
      fmt::format("{} cannot be written; fix: name a writable file with "
                  "--table, or tune with --dry-run",
                  shown_text(path.string())));
}

void check_is_writable(const fs::path& path) {
  std::ofstream file(temporary_of(path), std::ios::binary);
  if (!file) {
    refuse_writing(path);
  }
  file.close();
  std::error_code ignored;
  fs::remove(temporary_of(path), ignored);
}

void check_is_of_card(const fs::path& path, const TuningTable& table, const TargetDevice& preset,
                      const std::string& card) {
  if (table.device != preset.name || table.card != card) {
    throw UsageError(fmt::format(
        "--table {}: holds rows of {} ({}), this card is {} ({}); fix: give each card a "
        "table of its own",
        shown_text(path.string()), shown_text(table.device), shown_text(table.card), preset.name,
        shown_text(card)));
  }
}

}  // namespace

TargetDevice find_card_preset(const TargetDevice& card) {
  for (const TargetDevice& preset : target_device_presets()) {
    if (preset.arch == card.arch && preset.num_sms == card.num_sms &&
        preset.shared_memory_per_block == card.shared_memory_per_block &&
        names_card(preset.name, card.name)) {
      return preset;
    }
  }
  throw UsageError(
      fmt::format("{} ({}, {} multiprocessors): no card of this name and size is "
                  "known; fix: add it to target_device.cpp, or tune with --dry-run",
                  shown_text(card.name), card.arch, card.num_sms));
}

TableFile open_table(const fs::path& path, const TargetDevice& preset, const std::string& card) {
  TableFile file = {path, {.device = preset.name, .card = card, .rows = {}, .problem = ""}};
  if (fs::exists(path)) {
    if (!fs::is_regular_file(path)) {
      throw UsageError(fmt::format("--table {}: is no file; fix: name a file of JSON, or a new one",
                                   shown_text(path.string())));
    }
    std::ifstream stream(path, std::ios::binary);
    file.table =
        parse_tuning_table(path.string(), std::string(std::istreambuf_iterator<char>(stream), {}));
    check_is_of_card(path, file.table, preset, card);
  }
  check_is_writable(path);
  return file;
}

void write_table(const TableFile& file) {
  const fs::path temporary = temporary_of(file.path);
  std::ofstream stream(temporary, std::ios::binary);
  stream << to_json(file.table);
  stream.close();
  std::error_code error;
  if (stream) {
    fs::rename(temporary, file.path, error);
  }
  if (!stream || error) {
    refuse_writing(file.path);
  }
}

std::optional<TunedRow> row_not_tried(const TuningTable& table, const TuneResult& result,
                                      const std::vector<std::string>& kernels) {
  const TuningKey key = tuning_key(result.descriptor);
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const TunedRow& each) { return each.key == key; });
  if (kernels.empty() || row == table.rows.end() || !row->knobs.kernel.has_value()) {
    return std::nullopt;
  }
  const std::string kernel(to_string(*row->knobs.kernel));
  const bool was_tried = std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
  return was_tried ? std::nullopt : std::optional(*row);
}

}  // namespace attnjit
