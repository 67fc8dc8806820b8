// Compares outputs and LSEs with the fp64 reference. One thread block per query row.
#include "device/check_elements.cuh"
#include "lse_tolerance.h"

using namespace attnjit::check;

namespace {

constexpr long long reference_poison = -1;  // every byte 0xff: no arithmetic gives this NaN

// Non-negative doubles are ordered like their bits.
__device__ void raise_to(double* target, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(target),
            static_cast<unsigned long long>(__double_as_longlong(value)));
}

__device__ void count_up(long long* target, long long count) {
  if (count > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(target),
              static_cast<unsigned long long>(count));
  }
}

struct Errors {
  double worst_excess = 0.0;
  double worst_error = 0.0;
  long long mismatches = 0;
  long long compared = 0;

  __device__ void add(double value, double reference, double tolerance) {
    ++compared;
    const bool both_finite = isfinite(value) && isfinite(reference);
    if (!both_finite) {
      mismatches += value == reference ? 0 : 1;  // NaN equals nothing; -inf equals -inf
      return;
    }
    const double error = fabs(value - reference);
    worst_error = fmax(worst_error, error);
    worst_excess = fmax(worst_excess, error / tolerance);
  }
};

// What an output of few bits is compared as: the reference itself where the stored value is what a
// result within its tolerance rounds to, else the stored value.
__device__ double stored_value(const CompareArguments& arguments, long long index,
                               double reference) {
  const double value = load_element(arguments.out, index, arguments.kind);
  if (!is_fp8_kind(arguments.kind))
    return value;
  const double scale = arguments.out_scale;
  const double tolerance = arguments.absolute + arguments.relative * fabs(reference);
  const auto rounded = [&](double bound) {
    unsigned char code;
    store_element(&code, 0, arguments.kind, static_cast<float>(bound / scale));
    return static_cast<double>(load_element(&code, 0, arguments.kind));
  };
  const bool is_within =
      value >= rounded(reference - tolerance) && value <= rounded(reference + tolerance);
  return is_within ? reference : value * scale;
}

}  // namespace

extern "C" __global__ void compare_outputs(const __grid_constant__ CompareArguments arguments) {
  const long long row = blockIdx.x;
  const int head = static_cast<int>(row % arguments.num_q_heads);
  const int query = static_cast<int>(row / arguments.num_q_heads % arguments.extent);
  const long long request = row / arguments.num_q_heads / arguments.extent;
  const long long out = request * arguments.out_strides.batch +
                        query * arguments.out_strides.token + head * arguments.out_strides.head;
  const bool is_owned = __double_as_longlong(arguments.reference_lse[row]) != reference_poison;
  Errors errors;
  double dot = 0.0;
  double squares = 0.0;
  for (int i = threadIdx.x; i < arguments.head_dim_v; i += blockDim.x) {
    if (!is_owned) {
      errors.mismatches += is_poison(arguments.out, out + i, arguments.kind) ? 0 : 1;
      continue;
    }
    const double reference = arguments.reference_out[row * arguments.head_dim_v + i];
    const double value = stored_value(arguments, out + i, reference);
    errors.add(value, reference, arguments.absolute + arguments.relative * fabs(reference));
    dot += value * reference;
    squares += value * value + reference * reference;
  }
  Comparison* result = arguments.result;
  raise_to(&result->worst_excess, errors.worst_excess);
  raise_to(&result->worst_error, errors.worst_error);
  atomicAdd(&result->dot, dot);
  atomicAdd(&result->squares, squares);
  if (threadIdx.x == 0 && arguments.lse != nullptr) {
    const long long lse = request * arguments.lse_strides.batch +
                          query * arguments.lse_strides.token + head * arguments.lse_strides.head;
    Errors lse_errors;
    if (is_owned) {
      lse_errors.add(arguments.lse[lse], arguments.reference_lse[row],
                     lse_tolerance(arguments, arguments.reference_lse[row],
                                   arguments.reference_magnitude[row]));
    } else {
      lse_errors.mismatches += is_poison(arguments.lse, lse, element_fp32) ? 0 : 1;
    }
    raise_to(&result->worst_lse_excess, lse_errors.worst_excess);
    raise_to(&result->worst_lse_error, lse_errors.worst_error);
    errors.mismatches += lse_errors.mismatches;
    errors.compared += lse_errors.compared;
  }
  count_up(&result->mismatches, errors.mismatches);
  count_up(&result->compared, errors.compared);
}
