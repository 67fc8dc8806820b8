// What rules of legality and of support both ask of a descriptor. Private; pure.
#pragma once

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

inline bool is_fp8(DataType type) {
  return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;
}

inline bool is_half(DataType type) {
  return type == DataType::bf16 || type == DataType::fp16;
}

inline bool is_prefill(Operation operation) {
  return operation == Operation::prefill || operation == Operation::prefill_kvcache ||
         operation == Operation::mla_prefill_rope;
}

// Its tokens are encoded: bytes that are not of one type.
inline bool is_encoded(const AttentionDescriptor& descriptor) {
  return descriptor.kv_encoding != KvEncoding::plain;
}

}  // namespace attnjit
