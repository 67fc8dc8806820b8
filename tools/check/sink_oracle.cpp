#include "sink_oracle.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace attnjit::check {
namespace {

template <typename Value>
Value value_at(const std::vector<unsigned char>& bytes, std::size_t first_byte, std::size_t index) {
  Value value;
  std::memcpy(&value, bytes.data() + first_byte + index * sizeof(Value), sizeof(Value));
  return value;
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// What softmax and output come to where all scores are 0 and all values 1.
struct OracleRow {
  double out;
  double lse;
};

OracleRow oracle_row(const DecodeProblem& problem, int request, int query, int head) {
  const DecodeCase& decode_case = problem.decode_case();
  const int length = decode_case.seq_lens[static_cast<std::size_t>(request)];
  const auto keys = static_cast<double>(visible_keys(decode_case, length, query).size());
  const double sink = std::exp(double{problem.sinks()[static_cast<std::size_t>(head)]});
  return {keys > 0 ? keys / (keys + sink) : 0.0, std::log(keys)};
}

// A value beside what it should be: differences, and those that no tolerance covers.
void compare(double value, double expected, double allowed, double& worst_error,
             double& worst_excess, Comparison& comparison) {
  ++comparison.compared;
  const bool is_equal = value == expected;  // -inf too
  comparison.mismatches += is_equal || (std::isfinite(value) && std::isfinite(expected)) ? 0 : 1;
  const double error = is_equal ? 0.0 : std::abs(value - expected);
  worst_error = std::max(worst_error, error);
  worst_excess = std::max(worst_excess, error / allowed);
}

}  // namespace

Comparison compare_with_sink_oracle(const DecodeProblem& problem,
                                    const std::vector<unsigned char>& outputs,
                                    const Tolerance& tolerance) {
  const DecodeCase& decode_case = problem.decode_case();
  const auto heads = static_cast<std::size_t>(decode_case.descriptor.num_q_heads);
  const auto columns = static_cast<std::size_t>(decode_case.descriptor.head_dim_v);
  const auto queries = static_cast<std::size_t>(decode_case.seqlen_q);
  const std::size_t rows = static_cast<std::size_t>(decode_case.batch()) * queries * heads;
  Comparison comparison = {};
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t head = row % heads;
    const std::size_t query = row / heads % queries;
    const std::size_t request = row / heads / queries;
    const OracleRow expected = oracle_row(problem, static_cast<int>(request),
                                          static_cast<int>(query), static_cast<int>(head));
    for (std::size_t column = 0; column < columns; ++column) {
      compare(from_bf16(value_at<std::uint16_t>(outputs, 0, row * columns + column)), expected.out,
              tolerance.absolute + tolerance.relative * expected.out, comparison.worst_error,
              comparison.worst_excess, comparison);
    }
    const std::size_t out_bytes = rows * columns * sizeof(std::uint16_t);
    compare(value_at<float>(outputs, out_bytes, (request * heads + head) * queries + query),
            expected.lse, tolerance.lse_absolute + tolerance.lse_relative * std::abs(expected.lse),
            comparison.worst_lse_error, comparison.worst_lse_excess, comparison);
  }
  return comparison;
}

}  // namespace attnjit::check
