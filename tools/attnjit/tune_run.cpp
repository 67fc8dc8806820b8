#include "tune_run.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "attnjit/target_device_query.hpp"
#include "decode_checker.hpp"
#include "decode_timing.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using Kernels = std::shared_ptr<const PreparedDecode>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Requests of many lengths, so that every way to split and to end a tile is met.
check::DecodeCase checked_case(const AttentionDescriptor& descriptor) {
  check::DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = descriptor.max_seqlen_q;
  decode_case.seq_lens = check::varied_lengths(7, 1500, 1);
  decode_case.seq_lens.front() = 6000;
  return decode_case;
}

check::DecodeCase timed_case(const AttentionDescriptor& descriptor, int batch, int seqlen_kv) {
  check::DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = descriptor.max_seqlen_q;
  decode_case.seq_lens = check::equal_lengths(batch, seqlen_kv);
  decode_case.kv_scale = 1;
  return decode_case;
}

class Sweep {
 public:
  Sweep(AttentionRuntime& runtime, const AttentionDescriptor& descriptor,
        const TuneRequest& request)
      : runtime_(runtime),
        descriptor_(descriptor),
        request_(request),
        checker_(runtime, request.device),
        checked_(checked_case(descriptor)) {
    for (const int batch : request.batches) {
      for (const int seqlen_kv : request.seqlens_kv) {
        points_.push_back(fmt::format("b{} s_k{}", batch, seqlen_kv));
        timers_.push_back(std::make_unique<check::DecodeTimer>(
            runtime, timed_case(descriptor, batch, seqlen_kv), request.device));
      }
    }
  }

  const std::vector<std::string>& points() const { return points_; }
  const std::vector<TriedVariant>& tried() const { return tried_; }

  // Those that were not tried yet.
  void try_all(const std::vector<ConfigVariant>& variants) {
    for (const ConfigVariant& variant : variants) {
      const bool is_known = std::any_of(
          tried_.begin(), tried_.end(),
          [&](const TriedVariant& other) { return other.variant.configs == variant.configs; });
      if (!is_known) {
        tried_.push_back(try_one(variant));
        print_message("{}: {}\n", describe(variant.knobs),
                      tried_.back().failure.empty()
                          ? fmt::format("{:.1f} us", mean_of(tried_.back().microseconds))
                          : tried_.back().failure);
      }
    }
  }

  // The right ones, fastest first.
  std::vector<const TriedVariant*> ranked() const {
    std::vector<const TriedVariant*> ranked;
    for (const TriedVariant& each : tried_) {
      if (each.failure.empty()) {
        ranked.push_back(&each);
      }
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const TriedVariant* left, const TriedVariant* right) {
                       return mean_of(left->microseconds) < mean_of(right->microseconds);
                     });
    return ranked;
  }

  // Medians per point of each of `variants`, timed in turn, so that what the card does meanwhile
  // touches all alike.
  std::vector<std::vector<double>> time_in_turn(const std::vector<ConfigVariant>& variants) {
    constexpr int turns = 5;
    std::vector<Kernels> kernels;
    for (const ConfigVariant& variant : variants) {
      kernels.push_back(prepare(variant));
    }
    std::vector<std::vector<double>> medians(variants.size());
    for (const auto& timer : timers_) {
      std::vector<std::vector<double>> times(variants.size());
      for (int turn = 0; turn < turns; ++turn) {
        for (std::size_t i = 0; i < kernels.size(); ++i) {
          const auto more = timer->time(
              kernels[i], {.warm_up = 1, .repetitions = std::max(1, request_.repetitions / turns)});
          times[i].insert(times[i].end(), more.begin(), more.end());
        }
      }
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        medians[i].push_back(median(times[i]));
      }
    }
    return medians;
  }

 private:
  Kernels prepare(const ConfigVariant& variant) {
    return runtime_.prepare_decode(descriptor_, variant.configs, request_.device);
  }

  TriedVariant try_one(const ConfigVariant& variant) {
    TriedVariant tried = {variant, "", {}};
    try {
      const Kernels kernels = prepare(variant);
      tried.failure = checker_.check(checked_, kernels).failure;
      for (const auto& timer : timers_) {
        if (tried.failure.empty()) {
          tried.microseconds.push_back(median(timer->time(
              kernels, {.warm_up = 2, .repetitions = std::max(3, request_.repetitions / 4)})));
        }
      }
    } catch (const std::exception& error) {
      tried.failure = error.what();
      tried.microseconds.clear();
    }
    return tried;
  }

  AttentionRuntime& runtime_;
  const AttentionDescriptor& descriptor_;
  const TuneRequest& request_;
  check::DecodeChecker checker_;
  check::DecodeCase checked_;
  std::vector<std::string> points_;
  std::vector<std::unique_ptr<check::DecodeTimer>> timers_;
  std::vector<TriedVariant> tried_;
};

// The model's stays, whatever kernels are asked for.
std::vector<ConfigVariant> with_kernels(std::vector<ConfigVariant> variants,
                                        const std::vector<std::string>& kernels) {
  const auto is_unwanted = [&](const ConfigVariant& variant) {
    return !kernels.empty() && std::find(kernels.begin(), kernels.end(),
                                         kernel_name(variant.configs.front())) == kernels.end();
  };
  variants.erase(std::remove_if(std::next(variants.begin()), variants.end(), is_unwanted),
                 variants.end());
  return variants;
}

// The model's twice, whose difference is the noise, and the fastest others.
std::vector<ConfigVariant> finalists(const Sweep& sweep) {
  constexpr std::size_t most_others = 3;
  const ConfigVariant& model = sweep.tried().front().variant;
  std::vector<ConfigVariant> finalists = {model, model};
  for (const TriedVariant* each : sweep.ranked()) {
    if (finalists.size() < 2 + most_others && each != &sweep.tried().front()) {
      finalists.push_back(each->variant);
    }
  }
  return finalists;
}

void decide(const std::vector<ConfigVariant>& finalists,
            const std::vector<std::vector<double>>& times, double margin_percent,
            TuneResult& result) {
  const double first = mean_of(times[0]);
  const double second = mean_of(times[1]);
  result.noise_percent = 100 * std::abs(first / second - 1);
  result.model_us = first < second ? times[0] : times[1];
  result.best_us = result.model_us;
  for (std::size_t i = 2; i < times.size(); ++i) {
    if (mean_of(times[i]) < mean_of(result.best_us)) {
      result.best_us = times[i];
      result.best = finalists[i].knobs;
    }
  }
  result.gain_percent = 100 * (mean_of(result.model_us) / mean_of(result.best_us) - 1);
  result.is_won = is_gain(result.gain_percent, result.noise_percent, margin_percent);
}

}  // namespace

bool is_gain(double gain_percent, double noise_percent, double margin_percent) {
  return gain_percent >= margin_percent && gain_percent > 2 * noise_percent;
}

double mean_of(const std::vector<double>& microseconds) {
  const double logs = std::accumulate(microseconds.begin(), microseconds.end(), 0.0,
                                      [](double sum, double time) { return sum + std::log(time); });
  return std::exp(logs / static_cast<double>(microseconds.size()));
}

TuneResult tune(AttentionRuntime& runtime, const AttentionDescriptor& descriptor,
                const TuneRequest& request) {
  const TargetDevice target = query_target_device(request.device);
  Sweep sweep(runtime, descriptor, request);
  sweep.try_all(with_kernels(legal_configs(descriptor, target), request.kernels));
  if (!sweep.tried().front().failure.empty()) {
    throw std::runtime_error(
        fmt::format("the model's configuration fails: {}; fix: run attnjit "
                    "check with this descriptor",
                    sweep.tried().front().failure));
  }
  sweep.try_all(legal_schedules(descriptor, target, sweep.ranked().front()->variant.knobs));

  TuneResult result;
  result.descriptor = descriptor;
  result.points = sweep.points();
  const std::vector<ConfigVariant> last = finalists(sweep);
  decide(last, sweep.time_in_turn(last), request.margin_percent, result);
  result.tried = sweep.tried();
  return result;
}

}  // namespace attnjit
