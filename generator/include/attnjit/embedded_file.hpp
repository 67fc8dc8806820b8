// A file of the source tree that was built into the binary by attnjit_embed_files
// (tools/cmake/attnjit_embed.cmake): a template, or the preset of a model. The views point into
// constant storage, valid for the life of the program. A plain value; thread-safe.
#pragma once

#include <string_view>

namespace attnjit {

struct EmbeddedFile {
  std::string_view name;  // path from the ROOT given to attnjit_embed_files, e.g. "device/math.cuh"
  std::string_view text;  // its bytes, unchanged
};

}  // namespace attnjit
