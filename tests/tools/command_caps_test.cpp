#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

const std::string readme_path = ATTNJIT_SOURCE_DIR "/README.md";
const std::string section_begin = "<!-- begin of attnjit caps --markdown -->\n";
const std::string section_end = "<!-- end of attnjit caps --markdown -->\n";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string caps(const std::string& arguments = "") {
  const CommandOutput output = run_attnjit("caps " + arguments);
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  CHECK(output.err.empty());
  return output.out;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// `readme` with `table` between its markers; as it is if it lacks one.
std::string with_table(std::string readme, const std::string& table) {
  const std::size_t begin = readme.find(section_begin);
  const std::size_t end = readme.find(section_end);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return readme;
  }
  const std::size_t first = begin + section_begin.size();
  return readme.replace(first, end - first, table);
}

// What is wrong with the section of `readme`; empty if it is `table`.
std::string staleness(const std::string& readme, const std::string& table) {
  if (holds(readme, section_begin + table + section_end)) {
    return "";
  }
  const bool has_markers = holds(with_table(readme, "\n"), section_begin + "\n" + section_end);
  return std::string("README.md, \"What is served\", ") +
         (has_markers ? "is not what `attnjit caps --markdown` prints"
                      : "lacks a marker of `attnjit caps --markdown`") +
         "; fix: put that between the markers, or run ATTNJIT_UPDATE_GOLDEN=1 "
         "build/dev/tests/tools/attnjit_command_tests \"the README says what is served\"";
}

bool wants_update() {
  const char* variable = std::getenv("ATTNJIT_UPDATE_GOLDEN");
  return variable != nullptr && std::string(variable) == "1";
}

}  // namespace

TEST_CASE("the README says what is served") {
  const std::string table = caps("--markdown");
  if (wants_update()) {
    const std::string updated = with_table(read_text(readme_path), table);
    std::ofstream(readme_path, std::ios::binary) << updated;
  }
  CHECK(staleness(read_text(readme_path), table) == "");
}

TEST_CASE("a README whose table is not the version's is told, with the command that mends it") {
  const std::string table = caps("--markdown");
  const std::string readme = "# Title\n" + section_begin + table + section_end + "More.\n";
  CHECK(staleness(readme, table) == "");
  std::string other = table;
  other.replace(other.find("causal"), 6, "tree");
  CHECK(holds(staleness(readme, other), "is not what `attnjit caps --markdown` prints"));
  CHECK(staleness(with_table(readme, other), other) == "");
  for (const std::string& text : {"# Title\n" + table, section_end + table + section_begin}) {
    CHECK(holds(staleness(text, table), "lacks a marker of `attnjit caps --markdown`"));
    CHECK(with_table(text, other) == text);
  }
}

TEST_CASE("caps lists the kernels of both families and what is refused") {
  const std::string text = caps();
  CHECK(holds(text, "decode by paged_decode_sm80 on a100 (sm_80), h100 (sm_90a)\n"));
  CHECK(holds(text, "decode by swapped_decode_sm90 on h100 (sm_90a)\n"));
  CHECK(holds(text, "merge_states by merge_states on a100 (sm_80), h100 (sm_90a)\n"));
  CHECK(holds(text, "\nfield "));
}

TEST_CASE("caps answers for the targets it is asked about") {
  const std::string ampere = caps("--arch rtx3090");
  CHECK(!holds(ampere, "sm90"));
  CHECK(holds(ampere, "decode by paged_decode_sm80 on rtx3090 (sm_86)\n"));
  CHECK(holds(ampere, "no tile fits in the 101376 bytes of shared memory of rtx3090 (sm_86)"));
  CHECK(caps("--arch sm_80,sm_90a") == caps());
  CHECK(caps("--arch sm_80,a100") == caps("--arch a100"));
}

TEST_CASE("caps as JSON holds every row and every refusal") {
  const std::string text = caps("--json");
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  const json document = json::parse(text);
  CHECK(document.at("schema") == 1);
  CHECK(document.at("command") == "caps");
  CHECK(document.at("targets").at(1) == json({{"name", "h100"}, {"arch", "sm_90a"}}));
  std::set<std::string> operations;
  for (const json& row : document.at("served")) {
    operations.insert(row.at("operation").get<std::string>());
    CHECK(row.at("axes").at("page_size").is_array());
    CHECK(!row.at("axes").at("mask").empty());
    CHECK(!row.at("targets").empty());
  }
  for (const json& refusal : document.at("refused")) {
    operations.insert(refusal.at("operation").get<std::string>());
    CHECK(!refusal.at("refused").empty());
    CHECK(!refusal.at("rule").get<std::string>().empty());
    CHECK(!refusal.at("fix").get<std::string>().empty());
  }
  CHECK(operations.size() == 8);
  const json& page_sizes = document.at("served").at(0).at("axes").at("page_size");
  CHECK(page_sizes.size() == 256);
}

TEST_CASE("the example of a refusal in JSON is refused by the command that explains") {
  const TemporaryDirectory directory;
  const json document = json::parse(caps("--json"));
  for (const json& refusal : document.at("refused")) {
    if (refusal.at("operation") == "decode") {
      const std::string path = directory.write("call.json", refusal.at("example").dump());
      const CommandOutput output = run_attnjit("explain '" + path + "' --arch sm_90a");
      CHECK(output.exit_code == 3);
      CHECK(holds(output.err, refusal.at("rule").get<std::string>()));
    }
  }
}

TEST_CASE("wrong usage of caps ends with 2 and an explanation") {
  for (const char* arguments :
       {"--arch sm_70", "--arch", "--markdown --json", "--unknown", "deepseek-v3"}) {
    INFO(arguments);
    const CommandOutput output = run_attnjit(std::string("caps ") + arguments);
    CHECK(output.exit_code == 2);
    CHECK(output.out.empty());
    CHECK(!output.err.empty());
  }
  CHECK(holds(run_attnjit("caps --arch sm_70").err, "arch = sm_70: no such target; fix: "));
  CHECK(holds(run_attnjit("caps --help").out, "default: sm_80,sm_90a"));
}

}  // namespace attnjit
