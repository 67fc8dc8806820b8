// What cards can do at most, by their vendor's word and, where we measured it, by ours: for the
// least time that a call takes, told without a GPU. Pure; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "attnjit/target_device.hpp"
#include "call_timing.hpp"

namespace attnjit::check {

struct CardRates {
  std::string card;                    // name of a preset
  DevicePeak datasheet;                // dense 16-bit products with fp32 sums; device memory
  std::optional<DevicePeak> measured;  // what the best kernels of ours sustained, of all that we
                                       // measured
};

// Of a preset, or of the one that has as many multiprocessors of that architecture; nullopt if
// there is none.
std::optional<CardRates> find_card_rates(const TargetDevice& device);

// From the launch to the end of so many dependent kernels that do nothing, in a graph;
// microseconds, measured on an H200.
double launch_microseconds(int num_kernels);

}  // namespace attnjit::check
