#include "card_rates.hpp"

#include <algorithm>
#include <array>

namespace attnjit::check {
namespace {

struct Datasheet {
  const char* card;
  double teraflops;             // dense, 16-bit operands, fp32 sums
  double gigabytes_per_second;  // of device memory
};

// Without sparsity everywhere: where a vendor's table has only the rate with it, half of that. SXM
// cards where there are several. Beside a row stands where its figures were read: none in a
// document of NVIDIA's itself, most on a page that quotes one. Pages that have several cards:
//   [1] github.com/DS436/sanskrit-token, experiments/05_lm_training/RENTING_A_GPU.md
//   [2] github.com/astroC86/gpu-datasheet
//   [3] github.com/winston-zhang-orz/gpu-specs, specs.md; names no document
//   [4] github.com/lamonoai/gpumap, nvidia/GPU.md; names no document
constexpr std::array<Datasheet, 13> datasheets = {{
    {"a100", 312, 2039},        // A100 datasheet, quoted by [1]: 624 with sparsity; memory, of the
                                // 80 GB: [3]
    {"rtx3090", 71, 936},       // Ampere GA102 white paper, quoted by
                                // github.com/modula-systems/modula/pull/1; memory: [2]
    {"a10", 125, 600},          // A10 datasheet, quoted by [1]: 250 with sparsity; memory: [2]
    {"rtx4090", 165, 1008},     // Ada white paper, appendix A, quoted by [1]: 165.2, with sparsity
                                // 330.4; memory: [4]
    {"l4", 121, 300},           // [3]: 242 with sparsity. NVIDIA does not say of which sums, says
                                // [1]; of fp32, says [4]
    {"l40s", 362, 864},         // L40S datasheet, quoted by
                                // github.com/inference-sim/inference-sim/issues/1738: 362.05, with
                                // sparsity 733, though half of that is 366, as [4] has it; memory:
                                // [3]. Of the sums as of the L4's
    {"h100", 989, 3350},        // H100 datasheet, quoted by [1]: 1979 with sparsity; memory: [2]
    {"h200", 989, 4800},        // H200 datasheet, quoted by [2]: 1979; that with sparsity: [4]
    {"h20", 148, 4000},         // no public datasheet: willitrunai.com/gpus/h20-96gb
    {"b200", 2250, 8000},       // Blackwell brief, HGX B200 of 1000 W, as quoted by
                                // glennklockwood.com/garden/processors/B200: 4500 with sparsity
    {"gb200", 2500, 8000},      // the same, GB200 of 1200 W: 5000 with sparsity
    {"rtx5090", 209.5, 1792},   // RTX Blackwell white paper, quoted by [1]: 419 with sparsity;
                                // memory: [4]
    {"rtxpro6000", 504, 1792},  // RTX PRO 6000 Blackwell, as quoted by hmc-tech.com: 503.8,
                                // with sparsity 1007.6
}};

// H200, 700 W, 2026-11-29: attention of head dimension 128 while the clocks hold, and reads of
// pages in any order.
constexpr std::array<Datasheet, 1> measurements = {{{"h200", 810, 4600}}};

template <std::size_t Count>
std::optional<DevicePeak> find_peak(const std::array<Datasheet, Count>& sheets,
                                    const std::string& card) {
  const auto* found = std::find_if(sheets.begin(), sheets.end(),
                                   [&](const Datasheet& sheet) { return sheet.card == card; });
  if (found == sheets.end()) {
    return std::nullopt;
  }
  return DevicePeak{.flops_per_second = found->teraflops * 1e12,
                    .bytes_per_second = found->gigabytes_per_second * 1e9};
}

std::string preset_of(const TargetDevice& device) {
  const auto presets = target_device_presets();
  const auto named = std::find_if(presets.begin(), presets.end(), [&](const TargetDevice& preset) {
    return preset.name == device.name;
  });
  if (named != presets.end()) {
    return named->name;
  }
  const auto alike = std::find_if(presets.begin(), presets.end(), [&](const TargetDevice& preset) {
    return preset.arch == device.arch && preset.num_sms == device.num_sms &&
           preset.l2_bytes == device.l2_bytes;
  });
  return alike == presets.end() ? "" : alike->name;
}

}  // namespace

std::optional<CardRates> find_card_rates(const TargetDevice& device) {
  const std::string card = preset_of(device);
  const std::optional<DevicePeak> datasheet = find_peak(datasheets, card);
  if (!datasheet) {
    return std::nullopt;
  }
  return CardRates{
      .card = card, .datasheet = *datasheet, .measured = find_peak(measurements, card)};
}

double launch_microseconds(int num_kernels) {
  constexpr double first = 1.6;
  constexpr double further = 0.7;
  return num_kernels < 1 ? 0 : first + further * (num_kernels - 1);
}

}  // namespace attnjit::check
