// The sweep of `attnjit tune`: every legal configuration of a decode is checked against the fp64
// reference and timed on the same data; the best are timed again in turn with the model's. One GPU,
// one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/config_selection.hpp"

namespace attnjit {

struct TuneRequest {
  int device = 0;  // CUDA ordinal
  std::vector<int> batches = {1, 16, 128};
  std::vector<int> seqlens_kv = {1024, 8192};  // with each batch; the geometric mean decides
  int repetitions = 20;                        // of the last round; a quarter before
  double margin_percent = 2;                   // that a configuration must gain on the model
  std::vector<std::string> kernels;            // attention kernels to try; empty = all
};

struct TriedVariant {
  ConfigVariant variant;
  std::string failure;               // of compiling, running or comparing; empty if it is right
  std::vector<double> microseconds;  // medians, one per point; empty if it failed
};

struct TuneResult {
  AttentionDescriptor descriptor;
  std::vector<std::string> points;  // "b16 s_k1024"
  std::vector<TriedVariant> tried;  // the model's first
  // Of the last round.
  TuningKnobs best;
  std::vector<double> model_us;
  std::vector<double> best_us;
  double gain_percent = 0;   // of the best on the model, by geometric means
  double noise_percent = 0;  // of the model on itself
  bool is_won = false;       // is_gain of these
};

// Whether a gain is more than chance: at least the margin, and more than twice what the model
// differs from itself.
bool is_gain(double gain_percent, double noise_percent, double margin_percent);

// The geometric mean.
double mean_of(const std::vector<double>& microseconds);

// Tunes one descriptor; progress on stderr. What one configuration throws is its failure; throws
// what the model's throws, and DriverError without a usable GPU.
TuneResult tune(AttentionRuntime& runtime, const AttentionDescriptor& descriptor,
                const TuneRequest& request);

}  // namespace attnjit
