#include "report_data.hpp"

#include <map>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "json_document.hpp"
#include "stored_kernel_json.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

// Gives each text a place of its own in `texts`: kernels share most of their headers.
class TextPool {
 public:
  explicit TextPool(Json& texts) : texts_(texts) {}

  std::size_t place_of(const std::string& text) {
    const auto [found, is_new] = places_.try_emplace(text, texts_.size());
    if (is_new) {
      texts_.push_back(text);
    }
    return found->second;
  }

 private:
  Json& texts_;
  std::map<std::string, std::size_t> places_;
};

Json files_of(const RenderedKernel& kernel, TextPool& pool) {
  Json files = Json::array();
  files.push_back({{"name", kernel.name + ".cu"}, {"text", pool.place_of(kernel.source)}});
  for (const SourceFile& header : kernel.headers) {
    files.push_back({{"name", header.name}, {"text", pool.place_of(header.text)}});
  }
  return files;
}

// What is wrong with a document of `bench --json`; "" if nothing.
std::string find_problem(const Json& run) {
  if (!run.is_object() || !run.contains("rows") || !run.at("rows").is_array()) {
    return "is not what `attnjit bench --json` prints";
  }
  if (run.value("schema", Json()) != 1) {
    return fmt::format("has schema {}, not 1", run.value("schema", Json()).dump());
  }
  if (!run.contains("card") || !run.at("card").is_string()) {
    return "names no card";
  }
  const Json peak = run.value("peak", Json());
  if (!peak.is_object() || !peak.value("tflops", Json()).is_number() ||
      !peak.value("gbps", Json()).is_number()) {
    return "has no peak of the card; a version before this one printed it";
  }
  for (const Json& row : run.at("rows")) {
    if (!row.is_object() || !row.value("case", Json()).is_string()) {
      return "has a row without a case";
    }
    for (const char* field : {"median_us", "min_us", "tflops", "gbps", "roofline_percent"}) {
      if (!row.value(field, Json()).is_number()) {
        return fmt::format("has a row without {}: {}", field, row.at("case").get<std::string>());
      }
    }
  }
  return "";
}

}  // namespace

ReportData::ReportData()
    : document_{{"schema", 1},
                {"version", ATTNJIT_VERSION},
                {"texts", Json::array()},
                {"cache", nullptr},
                {"runs", Json::array()}} {}

void ReportData::add_cache(const StoredKernels& stored, const std::filesystem::path& directory) {
  TextPool pool(document_["texts"]);
  Json kernels = Json::array();
  for (const StoredKernel& kernel : stored.kernels) {
    Json shown = to_json(kernel);
    shown["files"] = files_of(kernel.kernel, pool);
    kernels.push_back(std::move(shown));
  }
  Json cache = {{"total_bytes", stored.total_bytes},
                {"kernels", std::move(kernels)},
                {"damaged", to_json(stored.damaged)}};
  set_path(cache, "directory", directory);
  document_["cache"] = std::move(cache);
}

void ReportData::add_run(const std::string& file, const std::string& document) {
  Json run = Json::parse(document, nullptr, false);
  const std::string problem = run.is_discarded() ? "is no JSON" : find_problem(run);
  if (!problem.empty()) {
    throw UsageError(fmt::format("{}: {}; fix: give it a file made by `attnjit bench … --json`",
                                 shown_text(file), problem));
  }
  run["file"] = file;
  document_["runs"].push_back(std::move(run));
}

}  // namespace attnjit
