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

// The vendor's datasheets and architecture white papers; SXM cards where there are several.
constexpr std::array<Datasheet, 13> datasheets = {{{"a100", 312, 2039},
                                                   {"rtx3090", 71, 936},
                                                   {"a10", 125, 600},
                                                   {"rtx4090", 165, 1008},
                                                   {"l4", 121, 300},
                                                   {"l40s", 362, 864},
                                                   {"h100", 989, 3350},
                                                   {"h200", 989, 4800},
                                                   {"h20", 148, 4000},
                                                   {"b200", 2250, 8000},
                                                   {"gb200", 2500, 8000},
                                                   {"rtx5090", 209, 1792},
                                                   {"rtxpro6000", 504, 1792}}};

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
