// Random problems for the test of prefill's masks, of the case that ATTNJIT_CASE names: attention
// of one request and kv head, with all that the case's mask reads.
#pragma once

#include "host_warp.hpp"

#include <cstddef>
#include <random>
#include <vector>

// Of one case only: other cases of the test are in the same program.
namespace ATTNJIT_CASE {
#include "device/prefill_mask.cuh"
}  // namespace ATTNJIT_CASE

namespace {

using namespace ATTNJIT_CASE;
using namespace ATTNJIT_CASE::attnjit::kernel_interface;

constexpr int num_kv_heads = 2;
constexpr int num_heads = num_kv_heads * config::q_per_kv;
constexpr int num_requests = 2;  // the second one is looked at
constexpr int first_query = 11;  // of its rows, where they are ragged
constexpr int first_key = 13;

std::size_t index(long long value) {
  return static_cast<std::size_t>(value);
}

// Attention of one request and kv head, with all that any mask reads.
struct Problem {
  PrefillArguments arguments = {};
  PrefillWork work = {};
  std::vector<unsigned char> bytes;  // of a materialized mask or a tree
  std::vector<float> numbers;        // of an additive mask
  std::vector<int> prefix_lens;
  std::vector<int> q_segments;
  std::vector<int> kv_segments;
  std::vector<unsigned char> blocks;
  MaskStrides block_strides = {};              // of `blocks`
  std::vector<int> block_rows, block_columns;  // the same in compressed rows
};

int draw(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

// Strides of a tensor whose first dimensions may each serve all.
MaskStrides draw_strides(std::mt19937& random, int heads, int rows, int columns) {
  const auto or_zero = [&](long long stride) { return draw(random, 0, 2) == 0 ? 0 : stride; };
  return {or_zero(static_cast<long long>(heads) * rows * columns),
          or_zero(static_cast<long long>(rows) * columns), or_zero(columns), 1};
}

void draw_mask(std::mt19937& random, Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  constexpr bool is_tree = mask_has<MaskKind::tree>;
  constexpr bool is_bits = is_tree || mask_has<MaskKind::materialized_bits>;
  mask.queries = max(problem.work.seqlen_q + draw(random, -3, 3), 1);
  const int wanted = is_tree ? problem.work.seqlen_q : problem.work.seqlen_kv;
  mask.keys = max(wanted + draw(random, -20, 20), 1);
  const int columns = is_bits ? (mask.keys + 7) / 8 : mask.keys;
  mask.keys = is_bits ? columns * 8 : mask.keys;
  mask.strides = draw_strides(random, num_heads, mask.queries, columns);
  const std::size_t size = index(num_requests * num_heads) * index(mask.queries * columns);
  if (mask.strides.query == 0) {
    mask.queries = 0x7fffffff;  // one for all
  }
  const int density = draw(random, 1, 8);
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_set = draw(random, 0, 8) < density;
    problem.bytes.push_back(static_cast<unsigned char>(is_bits  ? draw(random, 0, 255)
                                                       : is_set ? i % 255 + 1
                                                                : 0));
    problem.numbers.push_back(static_cast<float>(draw(random, -8, 8)));
  }
  mask.mask =
      mask_is_additive ? static_cast<const void*>(problem.numbers.data()) : problem.bytes.data();
}

// Ids that rise, as those of packed documents, or are anything.
std::vector<int> draw_segments(std::mt19937& random, int size) {
  std::vector<int> segments;
  const bool are_ascending = draw(random, 0, 3) > 0;
  int segment = -1;
  for (int i = 0; i < size; ++i) {
    segment = are_ascending ? segment + (draw(random, 0, 29) == 0 ? 1 : 0) : draw(random, -1, 2);
    segments.push_back(segment);
  }
  return segments;
}

void draw_documents(std::mt19937& random, Problem& problem) {
  PrefillArguments& arguments = problem.arguments;
  static constexpr int some_offsets[num_requests + 1] = {};
  const PrefillWork& work = problem.work;
  problem.q_segments = draw_segments(random, first_query + num_requests * work.seqlen_q);
  problem.kv_segments = draw_segments(random, first_key + num_requests * (work.seqlen_kv + 5));
  arguments.mask.q_segments = problem.q_segments.data();
  arguments.mask.kv_segments = problem.kv_segments.data();
  arguments.queries.extent = work.seqlen_q;
  arguments.queries.offsets = draw(random, 0, 1) == 0 ? nullptr : some_offsets;
  arguments.keys.offsets = draw(random, 0, 1) == 0 ? nullptr : some_offsets;
  arguments.mask.kv_segment_stride = work.seqlen_kv + 5;
  const bool is_short = arguments.keys.offsets == nullptr && draw(random, 0, 3) == 0;
  arguments.mask.segment_keys = is_short ? work.seqlen_kv - draw(random, 0, 20) : 0x7fffffff;
}

// One row of `blocks` after the other, whatever it belongs to.
void compress_blocks(Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  for (std::size_t i = 0; i < problem.blocks.size(); ++i) {
    const int column = static_cast<int>(i) % mask.key_blocks;
    if (column == 0) {
      problem.block_rows.push_back(static_cast<int>(problem.block_columns.size()));
    }
    if (problem.blocks[i] != 0) {
      problem.block_columns.push_back(column);
    }
  }
  problem.block_rows.push_back(static_cast<int>(problem.block_columns.size()));
  mask.blocks = nullptr;
  mask.block_rows = problem.block_rows.data();
  mask.block_columns = problem.block_columns.data();
  mask.block_strides = {problem.block_strides.batch / mask.key_blocks,
                        problem.block_strides.head / mask.key_blocks, 1, 0};
}

void draw_blocks(std::mt19937& random, Problem& problem) {
  PrefillMask& mask = problem.arguments.mask;
  mask.query_blocks = max(problem.work.seqlen_q / layout_block + draw(random, 0, 1), 1);
  mask.key_blocks = max(problem.work.seqlen_kv / layout_block + draw(random, 0, 1), 1);
  const bool is_per_query_head = draw(random, 0, 1) == 0;
  mask.block_heads = is_per_query_head ? config::q_per_kv : 1;
  mask.block_strides = draw_strides(random, num_heads, mask.query_blocks, mask.key_blocks);
  mask.block_strides.query = mask.key_blocks;
  const int density = draw(random, 0, 4);
  for (int i = 0; i < num_requests * num_heads * mask.query_blocks * mask.key_blocks; ++i) {
    problem.blocks.push_back(static_cast<unsigned char>(draw(random, 0, 3) < density ? i : 0));
  }
  problem.block_strides = mask.block_strides;
  mask.blocks = problem.blocks.data();
  if (draw(random, 0, 1) == 0) {
    compress_blocks(problem);
  }
}

Problem draw_problem(std::mt19937& random) {
  Problem problem;
  PrefillWork& work = problem.work;
  work.request = num_requests - 1;
  work.kv_head = num_kv_heads - 1;
  work.seqlen_q = draw(random, 1, 70);
  work.seqlen_kv = draw(random, 0, 9) == 0 ? draw(random, 0, 1100) : draw(random, 0, 150);
  work.num_rows = work.seqlen_q * config::q_per_kv;
  work.first_query = first_query;
  work.first_key = first_key;
  work.key_position = draw(random, 0, 1) == 0 ? 0 : draw(random, -100, 100);
  work.query_place = work.seqlen_kv - work.seqlen_q;  // negative if queries have no key
  if (draw(random, 0, 1) == 0) {
    work.query_place = draw(random, -120, 200);
  }
  problem.prefix_lens = {-7, draw(random, -5, work.seqlen_kv + 20)};
  problem.arguments.mask.prefix_lens = problem.prefix_lens.data();
  if constexpr (reads_mask) {
    draw_mask(random, problem);
  }
  if constexpr (has_segments) {
    draw_documents(random, problem);
  }
  if constexpr (has_blocks) {
    draw_blocks(random, problem);
  }
  return problem;
}

}  // namespace
