#include "wgmma_case.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "host_matrix.hpp"

namespace attnjit::sm90 {
namespace {

constexpr int rows_of_a = 64;
constexpr int bytes_per_step = 32;  // along k
constexpr int all_steps = 1 << 20;  // a tile that k never leaves

int row_bytes(Swizzle swizzle) {
  return 16 << static_cast<int>(swizzle);
}

std::string_view name_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return "none";
    case Swizzle::b32:
      return "b32";
    case Swizzle::b64:
      return "b64";
    case Swizzle::b128:
      return "b128";
  }
  return "";
}

std::string to_string(const OperandCase& operand) {
  if (operand.source == Source::registers) {
    return "in registers";
  }
  return fmt::format("{} {}, box at row {}, column {}, byte {}",
                     operand.source == Source::k_major ? "k-major" : "mn-major",
                     name_of(operand.swizzle), operand.first_row, operand.first_column,
                     operand.misalignment);
}

// An operand's matrix as it lies in memory, and how it gets into shared memory.
struct Placed {
  HostMatrix memory;
  int box_columns;
  Operand operand;
};

// Columns of memory are columns of boxes: no multiple of a box's width need be given.
int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// `matrix` [mn, k], for A and B alike. Rows and columns that are not multiplied hold NaN's
// stand-in: numbers that would show.
Placed place(const HostMatrix& matrix, DataType dtype, const OperandCase& operand,
             unsigned free_offset) {
  const bool is_k_major = operand.source == Source::k_major;
  const int width = row_bytes(operand.swizzle);
  const int box_columns = width / size_bytes(dtype);
  const int rows = (is_k_major ? matrix.rows : matrix.columns) + operand.first_row;
  const int used = (is_k_major ? matrix.columns : matrix.rows) + operand.first_column;
  Placed placed{HostMatrix(rows, round_up(used, box_columns)), box_columns, {}};
  std::fill(placed.memory.values.begin(), placed.memory.values.end(), 15.0);
  for (int i = 0; i < matrix.rows; ++i) {
    for (int k = 0; k < matrix.columns; ++k) {
      placed.memory.at((is_k_major ? i : k) + operand.first_row,
                       (is_k_major ? k : i) + operand.first_column) = matrix.at(i, k);
    }
  }
  const auto box_bytes = static_cast<unsigned>(rows * width);
  Operand& out = placed.operand;
  out.tile_offset =
      (free_offset + 1023) / 1024 * 1024 + static_cast<unsigned>(operand.misalignment);
  out.start_offset =
      out.tile_offset +
      static_cast<unsigned>(operand.first_row * width + operand.first_column * size_bytes(dtype));
  out.swizzle = operand.swizzle;
  out.num_boxes = placed.memory.columns / box_columns;
  out.box_columns = box_columns;
  out.box_bytes = box_bytes;
  out.steps_per_tile = all_steps;
  const bool is_swizzled = operand.swizzle != Swizzle::none;
  const unsigned eight_rows = static_cast<unsigned>(8 * width);
  if (is_k_major) {
    out.leading_bytes = is_swizzled ? 0 : box_bytes;
    out.stride_bytes = eight_rows;
    out.step_bytes = is_swizzled ? bytes_per_step : 2 * box_bytes;
    out.steps_per_tile = is_swizzled ? width / bytes_per_step : all_steps;
    out.tile_bytes = box_bytes;
  } else {
    out.leading_bytes = is_swizzled ? box_bytes : eight_rows;
    out.stride_bytes = is_swizzled ? eight_rows : box_bytes;
    out.step_bytes = 2 * eight_rows;
  }
  return placed;
}

// A's fragments [k_steps, 4, 128 threads] as device/wgmma_sm90.cuh says.
std::vector<unsigned> fragments(const HostMatrix& a, DataType dtype) {
  const int per_register = 4 / size_bytes(dtype);
  const int k_per_step = bytes_per_step / size_bytes(dtype);
  std::vector<unsigned> registers;
  for (int step = 0; step < a.columns / k_per_step; ++step) {
    for (int i = 0; i < 4; ++i) {
      for (int thread = 0; thread < 128; ++thread) {
        const int lane = thread % 32;
        const int row = thread / 32 * 16 + lane / 4 + i % 2 * 8;
        const int k = step * k_per_step + i / 2 * k_per_step / 2 + lane % 4 * per_register;
        unsigned bits = 0;
        for (int j = 0; j < per_register; ++j) {
          bits |= static_cast<unsigned>(encode_element(dtype, a.at(row, k + j)))
                  << (j * 32 / per_register);
        }
        registers.push_back(bits);
      }
    }
  }
  return registers;
}

std::string unit_case_text(const ProductCase& product) {
  const auto major = [](Source source) {
    return source == Source::mn_major ? "Major::mn" : "Major::k";
  };
  return fmt::format(
      "#include \"device/wgmma_sm90.cuh\"\n"
      "namespace unit_case {{\n"
      "constexpr DataType type = DataType::{};\n"
      "constexpr int n = {};\n"
      "constexpr bool a_in_registers = {};\n"
      "constexpr Major a_major = {};\n"
      "constexpr Major b_major = {};\n"
      "}}\n",
      to_string(product.dtype), product.n, product.a.source == Source::registers,
      major(product.a.source), major(product.b.source));
}

// Compiled once for each text.
const UnitKernel& kernel_of(const ProductCase& product) {
  static std::map<std::string, UnitKernel> kernels;
  const std::string text = unit_case_text(product);
  const auto found = kernels.find(text);
  if (found != kernels.end()) {
    return found->second;
  }
  return kernels.emplace(text, UnitKernel("multiply_tiles", 128, unit_shared_bytes, text))
      .first->second;
}

unsigned end_of(const Operand& operand) {
  return operand.tile_offset + static_cast<unsigned>(operand.num_boxes) * operand.box_bytes;
}

// b [n, k].
std::vector<float> multiply_on_gpu(const ProductCase& product, const HostMatrix& a,
                                   const HostMatrix& b, const DeviceStream& stream) {
  MultiplyArguments arguments{};
  const auto copy = [&](const HostMatrix& matrix, const OperandCase& operand, unsigned free_offset,
                        TensorMap& map, Operand& out) {
    const Placed placed = place(matrix, product.dtype, operand, free_offset);
    DeviceBuffer memory = upload(to_bytes(placed.memory, product.dtype), stream);
    map = encode_matrix(product.dtype, placed.memory.rows, placed.memory.columns,
                        placed.memory.rows, placed.box_columns, operand.swizzle, memory);
    out = placed.operand;
    return memory;
  };
  DeviceBuffer a_memory;
  if (product.a.source == Source::registers) {
    a_memory = upload(fragments(a, product.dtype), stream);
    arguments.a_registers = static_cast<const unsigned*>(a_memory.data());
    arguments.a.steps_per_tile = all_steps;
  } else {
    a_memory = copy(a, product.a, 0, arguments.a_map, arguments.a);
  }
  const DeviceBuffer b_memory =
      copy(b, product.b, end_of(arguments.a), arguments.b_map, arguments.b);
  const auto count = static_cast<std::size_t>(rows_of_a * product.n);
  DeviceBuffer d = upload(std::vector<float>(count, NAN), stream);
  arguments.d = static_cast<float*>(d.data());
  arguments.k_steps = product.k * size_bytes(product.dtype) / bytes_per_step;
  arguments.shared_bytes = end_of(arguments.b) + 1024;
  kernel_of(product).launch(1, &arguments, stream);
  return download_values<float>(d, count, stream.handle());
}

// Of one element of the product: error over the precision of the sum of its magnitudes. The sums
// of 16-bit products lose bits below 2^-23, those of 8-bit ones below 2^-13, in every k-step.
double relative_error(const ProductCase& product, const HostMatrix& a, const HostMatrix& b, int row,
                      int column, double computed) {
  double exact = 0;
  double magnitude = 0;
  for (int k = 0; k < product.k; ++k) {
    const double term = a.at(row, k) * b.at(column, k);
    exact += term;
    magnitude += std::abs(term);
  }
  const double precision = product.dtype == DataType::fp8_e4m3 ? 0x1p-11 : 0x1p-20;
  const double error = std::abs(computed - exact);
  return std::isfinite(computed) ? error / (precision * magnitude + 1e-30) : HUGE_VAL;
}

}  // namespace

std::string to_string(const ProductCase& product) {
  return fmt::format("{} 64x{}x{}, a {}, b {}", to_string(product.dtype), product.n, product.k,
                     to_string(product.a), to_string(product.b));
}

ProductErrors run_product(const ProductCase& product, const DeviceStream& stream) {
  ProductErrors errors;
  for (const bool is_integer : {true, false}) {
    const auto make = [&](int rows, std::uint64_t seed) {
      return is_integer ? random_integers(rows, product.k, 3, seed)
                        : random_normal(rows, product.k, product.dtype, seed);
    };
    const HostMatrix a = make(rows_of_a, 1);
    const HostMatrix b = make(product.n, 2);
    const std::vector<float> d = multiply_on_gpu(product, a, b, stream);
    for (int row = 0; row < rows_of_a; ++row) {
      for (int column = 0; column < product.n; ++column) {
        const float computed = d[static_cast<std::size_t>(row * product.n + column)];
        const double error =
            relative_error(product, a, b, row, column, static_cast<double>(computed));
        if (is_integer) {
          errors.wrong_integers += error == 0 ? 0 : 1;
        } else {
          errors.worst_normal = std::max(errors.worst_normal, error);
        }
      }
    }
  }
  return errors;
}

}  // namespace attnjit::sm90
