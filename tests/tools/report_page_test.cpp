// attnjit report: what the page holds. How a browser draws it:
// tools/attnjit/report/check_in_browser.
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "report_data.hpp"
#include "report_page.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

const std::string bench_document = R"({"schema": 1, "card": "NVIDIA H200",
  "peak": {"tflops": 989.5, "gbps": 4800},
  "rows": [{"case": "gqa b 32", "median_us": 159.6, "min_us": 158.0, "tflops": 13.5, "gbps": 3366,
            "roofline_percent": 69.9}]})";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

StoredKernels two_kernels() {
  StoredKernel kernel;
  kernel.digest = std::string(32, 'a');
  kernel.kernel.name = kernel.metadata.name = "paged_decode_sm80";
  kernel.metadata.config = R"({"kernel": "paged_decode_sm80"})";
  kernel.kernel.source = "// </script><!-- \xff";
  kernel.kernel.headers = {{"device/shared.cuh", "int shared;"}};
  StoredKernel other = kernel;
  other.digest = std::string(32, 'b');
  other.kernel.source = "int y;";
  return {{kernel, other}, {{std::string(32, 'c'), MissReason::corrupt, "/cache/c: cut off"}}, 99};
}

std::string problem_of(const std::string& document) {
  try {
    ReportData().add_run("run.json", document);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a report holds every kernel, each shared header once, and ends no script early") {
  ReportData data;
  data.add_cache(two_kernels(), "/cache");
  const json shown = data_of(report_page(data.document()));
  const json& kernels = shown.at("cache").at("kernels");
  REQUIRE(kernels.size() == 2);
  CHECK(shown.at("texts").size() == 3);
  const auto text_of = [&](const json& kernel, int file) {
    return shown.at("texts").at(kernel.at("files").at(file).at("text").get<std::size_t>());
  };
  CHECK(text_of(kernels[0], 0) == "// </script><!-- \\xff");
  CHECK(text_of(kernels[1], 0) == "int y;");
  CHECK(text_of(kernels[0], 1) == text_of(kernels[1], 1));
  CHECK(shown.at("cache").at("damaged").at(0).at("reason") == "corrupt");
}

TEST_CASE("a report loads nothing from anywhere") {
  ReportData data;
  data.add_run("run.json", bench_document);
  const std::string page = report_page(data.document());
  for (const char* reference : {" src=", " href=", "@import", "url(", "import ", "fetch("}) {
    INFO(reference);
    CHECK_FALSE(holds(page, reference));
  }
  CHECK_FALSE(holds(page, "{{"));
}

TEST_CASE("a report refuses what is no bench run, with the file and what is wrong") {
  CHECK(problem_of(bench_document).empty());
  CHECK(problem_of("{") ==
        "run.json: is no JSON; fix: give it a file made by `attnjit bench … --json`");
  CHECK(holds(problem_of("{}"), "is not what `attnjit bench --json` prints"));
  json run = json::parse(bench_document);
  run["schema"] = 2;
  CHECK(holds(problem_of(run.dump()), "has schema 2, not 1"));
  run = json::parse(bench_document);
  run.erase("peak");
  CHECK(holds(problem_of(run.dump()), "has no peak"));
  run = json::parse(bench_document);
  run["rows"][0].erase("tflops");
  CHECK(holds(problem_of(run.dump()), "has a row without tflops: gqa b 32"));
}

TEST_CASE("the report of a run is printed; of a file that is missing, an error") {
  const TemporaryDirectory directory;
  const std::string file = directory.write("run.json", bench_document);
  const CommandOutput output = run_attnjit("report " + file);
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(data_of(output.out).at("runs").at(0).at("file") == file);
  CHECK(data_of(output.out).at("cache").is_null());
  const CommandOutput missing = run_attnjit("report " + file + "x");
  CHECK(missing.exit_code == 2);
  CHECK(holds(missing.err, "run.jsonx: cannot be read; fix: "));
}

}  // namespace
}  // namespace attnjit
