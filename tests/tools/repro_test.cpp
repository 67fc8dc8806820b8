// The programs that `attnjit repro` writes compile with nvcc, for every family of kernels.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../templates/nvcc.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a reproduction of every kernel builds with nvcc") {
  const std::string nvcc = test::find_nvcc();
  if (nvcc.empty()) {
    WARN("not checked: there is no nvcc");
    return;
  }
  const std::string sparse =
      "'{\"operation\": \"sparse_mla_decode\", \"sparsity\": \"token\", \"topk\": 64, "
      "\"head_dim_qk\": 576, \"head_dim_v\": 512, \"num_kv_heads\": 1, \"value_source\": "
      "\"prefix_of_k\", \"page_size\": 64, \"mask\": \"none\"}'";
  const std::string named[] = {
      "'{}' --arch sm_80",
      "'{}' --arch sm_90a --kernel combine",
      "'{}' --arch sm_90a --kernel schedule",
      "deepseek-v3 --tp 8 --arch sm_90a",
      "deepseek-v3 --page 1 --arch sm_90a",
      "deepseek-v3 --arch sm_90a --kernel combine",
      "deepseek-v3 --phase prefill --arch sm_120",
      "'{\"operation\": \"prefill_kvcache\", \"max_seqlen_q\": 0, \"mask\": \"sliding_window\", "
      "\"window_left\": 100}' --arch sm_90a",
      "deepseek-v3 --phase prefill --kernel combine --arch sm_90a",
      "'{\"operation\": \"merge_states\"}' --arch sm_90a",
      "'{\"operation\": \"append_kv_cache\", \"max_seqlen_q\": 0}' --arch sm_90a",
      sparse + " --arch sm_90a",
  };
  for (const std::string& kernel : named) {
    INFO(kernel);
    const TemporaryDirectory directory;
    const std::string out = (directory.path() / "out dir").string();
    const CommandOutput output = run_attnjit("repro " + kernel + " --out '" + out + "'");
    INFO(output.err);
    REQUIRE(output.exit_code == 0);
    const std::string log = directory.write("log", "");
    const std::string build = "NVCC='" + nvcc + "' '" + out + "/build.sh' >'" + log +
                              "' 2>&1 || { cat '" + log + "'; false; }";
    REQUIRE(std::system(build.c_str()) == 0);
    CHECK(fs::exists(fs::path(out) / "repro"));
    CHECK(run_attnjit("repro " + kernel + " --out '" + out + "'").exit_code == 2);
  }
}

TEST_CASE(
    "a reproduction of a decode sums up the partial results, which are all it writes if cut") {
  for (const std::string kernel : {"'{}' --arch sm_80", "deepseek-v3 --tp 8 --arch sm_90a",
                                   "deepseek-v3 --page 1 --arch sm_90a"}) {
    INFO(kernel);
    const TemporaryDirectory directory;
    const fs::path out = directory.path() / "out";
    REQUIRE(run_attnjit("repro " + kernel + " --out '" + out.string() + "'").exit_code == 0);
    std::ifstream file(out / "repro_decode.h");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    for (const std::string result : {"out", "lse", "partial out", "partial states"}) {
      CHECK(holds(text, "print_checksum(\"" + result + "\""));
    }
  }
}

TEST_CASE("a directory that cannot be written, or is a file, is refused by name") {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  const CommandOutput output = run_attnjit("repro '{}' --out '" + file + "'");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "must be a new or an empty directory"));
  CHECK(run_attnjit("repro '{}' --out ''").exit_code == 2);
  CHECK(run_attnjit("repro '{}' --out /proc/nothing/here").exit_code == 1);
}

}  // namespace attnjit
