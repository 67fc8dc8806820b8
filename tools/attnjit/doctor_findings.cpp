#include "doctor_findings.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/driver_error.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "attnjit/target_device_query.hpp"
#include "attnjit/tuning_table.hpp"
#include "doctor_cache.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

// Null, and a finding, where there is no usable NVRTC.
std::unique_ptr<NvrtcCompiler> examine_nvrtc(const std::filesystem::path& option,
                                             std::vector<Finding>& findings) {
  try {
    auto compiler = std::make_unique<NvrtcCompiler>(option);
    findings.push_back(
        {"nvrtc", Verdict::good,
         fmt::format("{}, {}, with {}; compiles for sm_{}", compiler->version(),
                     compiler->library_path().string(), compiler->builtins_path().string(),
                     fmt::join(compiler->supported_architectures(), ", sm_"))});
    return compiler;
  } catch (const ToolchainError& error) {
    findings.push_back({"nvrtc", Verdict::problem, error.what()});
    return nullptr;
  }
}

Finding examine_driver_version(const DriverDescription& driver, const NvrtcCompiler* compiler) {
  const int major = driver.version / 1000;
  const std::string text =
      fmt::format("CUDA {}.{}, {}", major, driver.version % 1000 / 10, driver.path.string());
  if (compiler != nullptr && std::stoi(compiler->version()) > major) {
    return {
        "driver", Verdict::problem,
        fmt::format("{}: older than NVRTC {}, whose cubins it does not load; update the driver, "
                    "or set ATTNJIT_NVRTC to an NVRTC {}",
                    text, compiler->version(), major)};
  }
  return {"driver", Verdict::good, text};
}

Finding examine_gpu(int ordinal, const NvrtcCompiler* compiler) {
  const TargetDevice gpu = query_target_device(ordinal);
  const std::string subject = fmt::format("gpu {}", ordinal);
  const std::string text = fmt::format(
      "{}, {}, {} SMs, {} KiB of shared memory per block, {} MiB of L2", gpu.name, gpu.arch,
      gpu.num_sms, gpu.shared_memory_per_block / 1024, gpu.l2_bytes / (1024 * 1024));
  if (gpu.compute_capability < 80) {
    return {subject, Verdict::note, text + ": no kernel is made for GPUs before sm_80"};
  }
  if (compiler == nullptr) {
    return {subject, Verdict::good, text};
  }
  const std::vector<int> known = compiler->supported_architectures();
  if (std::find(known.begin(), known.end(), gpu.compute_capability) == known.end()) {
    return {subject, Verdict::problem,
            fmt::format("{}: NVRTC {} does not compile for it; a newer one is needed", text,
                        compiler->version())};
  }
  return {subject, Verdict::good, text};
}

Verdict verdict_of(DriverProblem problem) {
  const bool is_missing = problem == DriverProblem::absent || problem == DriverProblem::no_device;
  return is_missing ? Verdict::note : Verdict::problem;
}

void examine_driver(const NvrtcCompiler* compiler, std::vector<Finding>& findings) {
  try {
    findings.push_back(examine_driver_version(describe_driver(), compiler));
    const int count = count_devices();
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      findings.push_back(examine_gpu(ordinal, compiler));
    }
  } catch (const DriverError& error) {
    findings.push_back({"driver", verdict_of(error.problem()), error.what()});
  } catch (const CudaError& error) {
    findings.push_back({"driver", Verdict::problem, error.what()});
  }
}

Finding examine_templates(const std::filesystem::path& option) {
  try {
    const TemplateLibrary library = TemplateLibrary::open(option);
    return {"templates", Verdict::good,
            fmt::format("{} files, digest {}", library.files().size(), library.digest())};
  } catch (const TemplateError& error) {
    return {"templates", Verdict::problem, error.what()};
  }
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::note:
      return "note";
    case Verdict::problem:
      return "problem";
  }
  return "";
}

Finding examine_tuning_tables(std::span<const TuningTable> tables) {
  std::vector<std::string> problems;
  std::size_t rows = 0;
  for (const TuningTable& table : tables) {
    rows += table.rows.size();
    if (!table.problem.empty()) {
      problems.push_back(table.problem);
    }
  }
  if (!problems.empty()) {
    return {"tuned", Verdict::problem, fmt::format("{}", fmt::join(problems, "; "))};
  }
  return {"tuned", Verdict::good,
          fmt::format("{} built in, {} rows", count_of(tables.size(), "table"), rows)};
}

std::vector<Finding> examine_machine(const KernelProviderOptions& options) {
  std::vector<Finding> findings;
  const auto compiler = examine_nvrtc(options.nvrtc, findings);
  examine_driver(compiler.get(), findings);
  // What is wrong with a variable of the cache is a finding too.
  const auto warn = [&](std::string_view warning) {
    findings.push_back({"cache", Verdict::problem, std::string(warning)});
  };
  const CacheOptions cache = resolve_cache_options({options.cache_directory, options.cache_layers,
                                                    options.cache_sharing, options.cache_max_bytes},
                                                   warn);
  const std::vector<Finding> places = examine_cache(cache);
  findings.insert(findings.end(), places.begin(), places.end());
  findings.push_back(examine_templates(options.templates));
  findings.push_back(examine_tuning_tables(embedded_tuning_tables()));
  return findings;
}

}  // namespace attnjit
