#include "nvrtc_search.hpp"

#include "../cache/scratch_directory.hpp"
#include "catch.hpp"
#include "sample_kernels.hpp"

#include <algorithm>

using namespace attnjit;
using namespace attnjit::test;

namespace fs = std::filesystem;

namespace {

fs::path make_file(const fs::path& path) {
  fs::create_directories(path.parent_path());
  write_text(path, "");
  return path;
}

// Position of the candidate to try at `path`, or -1.
std::ptrdiff_t position(const std::vector<NvrtcCandidate>& candidates, const fs::path& path) {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const auto& candidate) {
    return candidate.where == path && candidate.problem.empty();
  });
  return found != candidates.end() ? found - candidates.begin() : -1;
}

}  // namespace

TEST_CASE(
    "no toolkit needed: an NVRTC named by option is the only candidate, as file or as directory") {
  const ScratchDirectory scratch;
  const ScopedVariable variable("ATTNJIT_NVRTC", "/elsewhere");
  const fs::path file = make_file(scratch.path() / "libnvrtc.so.12");
  for (const fs::path& option : {file, scratch.path()}) {
    const auto candidates = nvrtc_candidates(option);
    REQUIRE(candidates.size() == 1);
    CHECK(candidates[0].where == file);
    CHECK(candidates[0].problem.empty());
  }
}

TEST_CASE("no toolkit needed: a directory that holds both versions gives the newer one") {
  const ScratchDirectory scratch;
  make_file(scratch.path() / "libnvrtc.so.12");
  const fs::path newer = make_file(scratch.path() / "libnvrtc.so.13");
  CHECK(nvrtc_candidates(scratch.path()).at(0).where == newer);
}

TEST_CASE(
    "no toolkit needed: what ATTNJIT_NVRTC names is the only candidate, and a problem with it is "
    "kept") {
  const ScopedVariable variable("ATTNJIT_NVRTC", "/nonexistent/nvrtc");
  const auto missing = nvrtc_candidates({});
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].origin == "$ATTNJIT_NVRTC");
  CHECK(missing[0].problem == "no such file or directory");
  const ScratchDirectory scratch;
  CHECK(contains(nvrtc_candidates(scratch.path()).at(0).problem, "holds neither"));
}

TEST_CASE(
    "no toolkit needed: loader path, toolkits and Python packages are looked through in this "
    "order") {
  const ScratchDirectory scratch;
  const fs::path toolkit = scratch.path() / "toolkit";
  const fs::path environment = scratch.path() / "environment";
  const fs::path in_toolkit = make_file(toolkit / "lib64" / "libnvrtc.so.13");
  const fs::path packages = environment / "lib" / "python3.11" / "site-packages" / "nvidia";
  const fs::path wheel_12 = make_file(packages / "cuda_nvrtc" / "lib" / "libnvrtc.so.12");
  const fs::path wheel_13 = make_file(packages / "cu13" / "lib" / "libnvrtc.so.13");
  const ScopedVariable unset("ATTNJIT_NVRTC", std::nullopt);
  const ScopedVariable cuda_home("CUDA_HOME", toolkit.string());
  const ScopedVariable cuda_path("CUDA_PATH", std::nullopt);
  const ScopedVariable virtual_environment("VIRTUAL_ENV", environment.string());
  const auto candidates = nvrtc_candidates({});
  CHECK(position(candidates, "libnvrtc.so.13") == 0);
  CHECK(position(candidates, "libnvrtc.so.12") == 1);
  CHECK(position(candidates, in_toolkit) == 2);
  CHECK(position(candidates, wheel_12) > 2);
  CHECK(position(candidates, wheel_13) > 2);
}

TEST_CASE(
    "no toolkit needed: NVRTC is found among the Python packages that attnjit was installed with, "
    "though no environment is active") {
  const ScratchDirectory scratch;
  const fs::path packages = scratch.path() / "lib" / "python3.11" / "site-packages";
  const fs::path wheel = make_file(packages / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13");
  const ScopedVariable unset("ATTNJIT_NVRTC", std::nullopt);
  const ScopedVariable virtual_environment("VIRTUAL_ENV", std::nullopt);
  const fs::path library = packages / "attnjit" / "libattnjit.so";
  const fs::path command = scratch.path() / "bin" / "attnjit";
  for (const fs::path& module : {library, command}) {
    CHECK(position(nvrtc_candidates({}, module), wheel) > 1);
  }
  CHECK(position(nvrtc_candidates({}, {}), wheel) == -1);
}

TEST_CASE("no toolkit needed: a program knows the file that it runs from") {
  CHECK(fs::equivalent(attnjit_module(), "/proc/self/exe"));
}
