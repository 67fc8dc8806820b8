# Third-party packages, all from the system. fmt and xxHash are linked, nlohmann/json is
# header-only; CLI11 and Catch2 are needed only by the tool and the tests. Nothing links libcuda or
# libnvrtc: runtime/ opens both when a program runs, and only their headers are needed here.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(Threads REQUIRED)

# Targets link ${ATTNJIT_FMT_TARGET}. Debian and Ubuntu ship no libfmt.a, so a binary that must run
# where fmt is not installed takes fmt's header-only form.
if(ATTNJIT_STATIC_FMT)
  set(ATTNJIT_FMT_TARGET fmt::fmt-header-only)
else()
  set(ATTNJIT_FMT_TARGET fmt::fmt)
endif()

# xxHash ships no CMake package on Debian and Ubuntu; XXH_INLINE_ALL needs only its header.
find_path(ATTNJIT_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

set(ATTNJIT_CUDA_INCLUDE_DIR "" CACHE PATH
    "Folder with cuda.h and nvrtc.h of CUDA 12.4 or later; empty: a toolkit's, else that of .deps/")
include(attnjit_cuda_headers)
if(NOT ATTNJIT_CUDA_INCLUDE_DIR)
  # A normal variable shadows the empty cache entry, so that each configure looks anew: a toolkit
  # may have come, gone or been hidden (ATTNJIT_HIDE_TOOLKIT=1) since.
  attnjit_find_cuda_headers(ATTNJIT_CUDA_INCLUDE_DIR)
endif()
