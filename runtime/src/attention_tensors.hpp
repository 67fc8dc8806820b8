// Checks and strides of the tensors that several operations take: rows, numbers, sinks, masks.
// Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/tensor_view.hpp"
#include "interface/paged_decode_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {

constexpr std::int64_t elements_per_16_bytes = 8;

// A tensor whose rows are copied 16 bytes at a time. False if its shape is wrong.
bool check_rows(TensorChecks& checks, std::string_view name, const TensorView& view, DataType dtype,
                std::initializer_list<std::int64_t> shape);

// An output: as check_rows, and no two elements in one place.
void check_output(TensorChecks& checks, std::string_view name, const TensorView& view,
                  DataType dtype, std::initializer_list<std::int64_t> shape);

// Contiguous numbers that the device reads one by one. False if the shape is wrong.
bool check_numbers(TensorChecks& checks, std::string_view name, const TensorView& view,
                   DataType dtype, std::initializer_list<std::int64_t> shape);

void check_block_table(TensorChecks& checks, const TensorView& block_table, std::int64_t batch);

// One logit per query head, given exactly if the descriptor has sinks.
void check_sinks(TensorChecks& checks, const AttentionDescriptor& descriptor,
                 const TensorView& sinks);

void check_softmax_scale(TensorChecks& checks, float softmax_scale);

void require_absent(TensorChecks& checks, std::string_view name, const TensorView& view,
                    std::string_view because, std::string_view fix);

// 0 for a dimension of extent 1, which stands for all.
std::int64_t broadcast_stride(const TensorView& view, std::size_t dimension);

// Of [batch|1, heads|1, queries|1, keys].
kernel_interface::MaskStrides mask_strides(const TensorView& mask);

// Of [total_q, num_q_heads, columns], or [batch, seqlen_q, num_q_heads, columns].
kernel_interface::QueryStrides query_strides(const TensorView& view);

// An extent that a kernel counts in 32 bits.
int bounded_extent(std::int64_t extent);

}  // namespace attnjit
