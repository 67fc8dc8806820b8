#include "fuzzed_calls.hpp"

#include <cstdint>
#include <limits>

namespace attnjit::test {
namespace {

std::int64_t fuzzed_extent(FuzzBytes& bytes) {
  switch (bytes.below(4)) {
    case 0:
      return bytes.byte();
    case 1:
      return bytes.pick<std::int64_t>({0, 1, 2, 8, 16, 64, 128, 192, 512, 576, 656});
    case 2:
      return std::int64_t{1} << bytes.below(64);
    default:
      return bytes.number<std::int64_t>();
  }
}

void make_contiguous(attnjit_tensor& tensor) {
  std::uint64_t stride = 1;
  for (int i = ATTNJIT_MAX_RANK; i-- > 0;) {
    if (i < tensor.rank) {
      tensor.strides[i] = static_cast<std::int64_t>(stride);
      stride *= static_cast<std::uint64_t>(tensor.shape[i]);
    }
  }
}

}  // namespace

std::string fuzzed_descriptor(FuzzBytes& bytes, const std::string& descriptor) {
  std::string text = descriptor;
  for (std::size_t left = bytes.below(4); left > 0 && !text.empty(); --left) {
    const std::size_t place = (bytes.byte() * 256U + bytes.byte()) % text.size();
    switch (bytes.below(4)) {
      case 0:
        text[place] = static_cast<char>(bytes.byte());
        break;
      case 1:
        text.erase(place, bytes.below(16));
        break;
      case 2:
        text.insert(place, bytes.text(16));
        break;
      default:  // another field, or one twice
        text.insert(1, bytes.pick<const char*>(
                           {R"("mask": "causal", )", R"("has_sinks": true, )",
                            R"("batch_invariant": true, )", R"("max_seqlen_q": 4, )",
                            R"("page_size": 16, )", R"("dtype_q": "fp16", )",
                            R"("num_q_heads": 128, )", R"("head_dim_qk": 192, )",
                            R"("mask": "composed", "mask_formula": "causal or document", )"}));
    }
  }
  return text;
}

void* fuzzed_address(FuzzBytes& bytes) {
  alignas(256) static std::byte host[4096];
  const std::size_t kind = bytes.below(8);
  if (kind == 0) {
    return nullptr;
  }
  if (kind == 1) {
    return host;
  }
  auto* const device = static_cast<std::byte*>(device_address(static_cast<int>(bytes.below(64))));
  return kind == 2 ? device + bytes.byte() : device;
}

void fuzz_tensor(FuzzBytes& bytes, attnjit_tensor& tensor) {
  switch (bytes.below(6)) {
    case 0:
      tensor.data = fuzzed_address(bytes);
      break;
    case 1:
      tensor.dtype = bytes.one_in(8) ? bytes.number<attnjit_dtype>()
                                     : static_cast<attnjit_dtype>(bytes.below(8));
      break;
    case 2:
      tensor.rank = bytes.one_in(8) ? bytes.number<std::int32_t>()
                                    : static_cast<std::int32_t>(bytes.below(6));
      break;
    case 3:
      tensor.shape[bytes.below(ATTNJIT_MAX_RANK)] = fuzzed_extent(bytes);
      break;
    case 4:
      tensor.strides[bytes.below(ATTNJIT_MAX_RANK)] = fuzzed_extent(bytes);
      break;
    default:
      tensor.data = fuzzed_address(bytes);
      tensor.dtype = static_cast<attnjit_dtype>(bytes.below(8));
      tensor.rank = static_cast<std::int32_t>(bytes.below(6));
      for (std::int64_t& extent : tensor.shape) {
        extent = fuzzed_extent(bytes);
      }
      make_contiguous(tensor);
  }
}

std::size_t fuzzed_size(FuzzBytes& bytes, std::size_t right) {
  if (!bytes.one_in(8)) {
    return right;
  }
  return bytes.one_in(2) ? bytes.number<std::size_t>() : bytes.number<std::uint16_t>();
}

float fuzzed_scale(FuzzBytes& bytes) {
  return bytes.one_in(2) ? 0.0F : bytes.number<float>();
}

}  // namespace attnjit::test
