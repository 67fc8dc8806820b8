// A kernel -> the files of a stand-alone program that launches it: the kernel's own sources and a
// main of its family (repro/), for a bug report. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/rendered_kernel.hpp"
#include "kernel_source.hpp"

namespace attnjit {

// What of a call a kernel does not say.
struct ReproductionCase {
  int batch = 2;
  int seqlen_q = 0;  // 0: the descriptor's most, or 1, of a decode; else 64
  int seqlen_kv = 256;
  unsigned long long seed = 1;
};

// Paths below the program's directory, and texts: kernel.cu and what it includes, main.cu,
// repro_case.h, build.sh. Throws UsageError for a kernel that there is no main for,
// and for a size that its main does not read.
std::vector<SourceFile> make_reproduction(const KernelSource& source,
                                          const ReproductionCase& sizes);

}  // namespace attnjit
