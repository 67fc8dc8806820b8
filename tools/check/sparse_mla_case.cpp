#include "sparse_mla_case.hpp"

#include <cmath>

#include <fmt/format.h>

namespace attnjit::check {
namespace {

std::string describe_pool(const TokenPoolCase& pool, bool is_paged) {
  const std::string pages = is_paged ? fmt::format(", page {}", pool.page_size) : std::string();
  return fmt::format("topk {} of {}{}, {}, lengths {}", pool.topk, pool.num_tokens, pages,
                     to_string(pool.pattern), to_string(pool.lengths));
}

}  // namespace

std::string_view to_string(IndexPattern value) {
  switch (value) {
    case IndexPattern::mixed:
      return "mixed";
    case IndexPattern::distinct:
      return "distinct";
    case IndexPattern::repeated:
      return "repeated";
    case IndexPattern::empty_rows:
      return "empty_rows";
    case IndexPattern::nothing:
      return "nothing";
  }
  return "";
}

std::string_view to_string(LengthPattern value) {
  switch (value) {
    case LengthPattern::all:
      return "all";
    case LengthPattern::given:
      return "given";
    case LengthPattern::partial:
      return "partial";
    case LengthPattern::zero:
      return "zero";
  }
  return "";
}

std::string describe(const SparseMlaCase& sparse_case) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  const bool is_paged = descriptor.kv_layout == KvLayout::paged;
  const bool has_extra = sparse_case.extra_pool.topk > 0;
  const std::string encoding = descriptor.kv_encoding != KvEncoding::plain
                                   ? fmt::format(" {}", to_string(descriptor.kv_encoding))
                                   : std::string();
  const std::string extra =
      has_extra ? " | " + describe_pool(sparse_case.extra_pool, is_paged) : std::string();
  const std::string sinks = descriptor.has_sinks
                                ? fmt::format(" | {} sinks", to_string(sparse_case.sinks))
                                : std::string();
  return fmt::format("{} {}/{} h {} {}{} | b {} s_q {} | {}{}{}{} | scale {:.3g}",
                     to_string(descriptor.operation), descriptor.head_dim_qk, descriptor.head_dim_v,
                     descriptor.num_q_heads, to_string(descriptor.dtype_q), encoding,
                     sparse_case.batch, sparse_case.seqlen_q,
                     describe_pool(sparse_case.pool, is_paged), extra, sinks,
                     sparse_case.has_page_gaps ? " | gaps" : "", softmax_scale_of(sparse_case));
}

float softmax_scale_of(const SparseMlaCase& sparse_case) {
  return static_cast<float>(sparse_case.softmax_scale.value_or(
      1.0 / (sparse_case.kv_scale * std::sqrt(sparse_case.descriptor.head_dim_qk))));
}

std::int64_t count_values(const SparseMlaCase& sparse_case) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  return std::int64_t{sparse_case.num_query_tokens()} * descriptor.num_q_heads *
         (descriptor.head_dim_v + (descriptor.returns_lse ? 1 : 0));
}

}  // namespace attnjit::check
