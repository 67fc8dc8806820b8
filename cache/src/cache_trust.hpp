// Whose kernels would be run: a cache directory that others can write is not used, for whoever
// writes there decides what the GPU executes. Private; reads only, thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

namespace attnjit {

enum class Trust {
  unknown,  // nothing is there, or it cannot be examined: calls that use it will tell
  trusted,
  refused,
};

struct TrustVerdict {
  Trust trust = Trust::unknown;
  std::string problem;  // of a refusal: what is wrong and what to do
};

// Of a directory that one user writes: its owner is the caller or root, nobody else can write it,
// a link to it is the caller's or root's too, and nobody can put another one in its place.
TrustVerdict judge_own_directory(const std::filesystem::path& directory);

// Of what is only read, file or directory: not everybody can write it. Whose it is does not matter.
// The problem does not name it.
TrustVerdict judge_layer(const struct stat& status);

}  // namespace attnjit
