// What the bytes of an encoded token are: e4m3 columns with a scale for each so many of them, then
// rope columns in bf16. Scales lie behind the columns, or apart, behind all rows of a page.
#pragma once

#include "device/config_types.cuh"
#include "device/fp8_decode.cuh"

template <KvEncoding encoding>
struct EncodedToken {
  static_assert(encoding == KvEncoding::fp8_656 || encoding == KvEncoding::fp8_584,
                "plain tokens have no parts");
  static constexpr bool has_scales_apart = encoding == KvEncoding::fp8_584;
  static constexpr int fp8_columns = has_scales_apart ? 448 : 512;
  static constexpr int rope_columns = 64;
  static constexpr int columns_per_scale = has_scales_apart ? 64 : 128;
  static constexpr int scale_bytes = has_scales_apart ? 8 : 16;  // of all of a token's
  // As it lies in a row: with its scales, unless they are apart.
  static constexpr int row_bytes =
      fp8_columns + rope_columns * 2 + (has_scales_apart ? 0 : scale_bytes);
  // Where its parts are once it is copied, scales and all, from the row's begin.
  static constexpr int first_scale_byte = has_scales_apart ? row_bytes : fp8_columns;
  static constexpr int first_rope_byte = fp8_columns + (has_scales_apart ? 0 : scale_bytes);
  static constexpr int pitch = (row_bytes + (has_scales_apart ? scale_bytes : 0) + 15) / 16 * 16;
};

// The scale of column `column` of a token whose copied bytes begin at `token`.
template <KvEncoding encoding>
__device__ __forceinline__ float scale_of_column(const unsigned char* token, int column) {
  using Token = EncodedToken<encoding>;
  const unsigned char* scales = token + Token::first_scale_byte;
  const int scale = column / Token::columns_per_scale;
  if constexpr (Token::has_scales_apart)
    return e8m0_to_float(scales[scale]);
  else
    return reinterpret_cast<const float*>(scales)[scale];
}
