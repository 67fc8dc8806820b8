// What the page of `attnjit report` shows, as the JSON that its script reads:
//   {"schema": 1, "version", "texts": [source files, each once],
//    "cache": null or {"directory", "total_bytes", "damaged": [{"key", "reason", "detail"}],
//                      "kernels": [those of `ls --json`, and "files": [{"name", "text": index}]]},
//    "runs": [{"file", "card", "peak": {"tflops", "gbps"}, "rows": those of `bench --json`}]}
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "stored_kernel.hpp"

namespace attnjit {

class ReportData {
 public:
  ReportData();

  void add_cache(const StoredKernels& stored, const std::filesystem::path& directory);

  // A document of `bench --json`. Throws UsageError, with `file` and what is wrong, if it is none.
  void add_run(const std::string& file, const std::string& document);

  const nlohmann::ordered_json& document() const { return document_; }

 private:
  nlohmann::ordered_json document_;
};

}  // namespace attnjit
