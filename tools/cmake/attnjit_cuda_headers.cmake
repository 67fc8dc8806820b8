# Finds cuda.h and nvrtc.h. They come from a CUDA toolkit or from the pip wheels that tools/setup
# unpacks into .deps/; tools/cuda_toolkit.sh looks in the same places for the scripts.

# Sets <result> to CUDA_VERSION of <folder>/cuda.h (12040 for 12.4), or to 0 where it or nvrtc.h is
# missing.
function(attnjit_read_cuda_version folder result)
  set(version 0)
  if(EXISTS "${folder}/cuda.h" AND EXISTS "${folder}/nvrtc.h")
    file(STRINGS "${folder}/cuda.h" line REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" version "${line}")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Include folders of every place where a toolkit may be, the surest first.
function(attnjit_list_toolkit_folders result)
  set(folders)
  foreach(root IN ITEMS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}")
    if(root)
      list(APPEND folders "${root}/include")
    endif()
  endforeach()
  find_program(nvcc nvcc NO_CACHE)
  if(nvcc)
    file(REAL_PATH "${nvcc}" nvcc)
    cmake_path(GET nvcc PARENT_PATH binaries)
    cmake_path(GET binaries PARENT_PATH root)
    list(APPEND folders "${root}/include")
  endif()
  file(GLOB installed LIST_DIRECTORIES true "/usr/local/cuda*/include")
  list(SORT installed COMPARE NATURAL ORDER DESCENDING)
  list(APPEND folders ${installed})
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()

# Sets <result> to the folder of both headers. Where that is the wheels' folder, sets
# ATTNJIT_WHEELS_NVRTC to their libnvrtc, with which tests then run.
function(attnjit_find_cuda_headers result)
  set(folders)
  if(NOT "$ENV{ATTNJIT_HIDE_TOOLKIT}" STREQUAL "1")
    attnjit_list_toolkit_folders(folders)
  endif()
  set(wheels "${attnjit_SOURCE_DIR}/.deps/cuda/nvidia/cu13")
  list(APPEND folders "${wheels}/include")
  foreach(folder IN LISTS folders)
    attnjit_read_cuda_version("${folder}" version)
    if(version GREATER_EQUAL 12040)
      message(STATUS "CUDA headers: ${folder} (CUDA_VERSION ${version})")
      set(${result} "${folder}" PARENT_SCOPE)
      if(folder STREQUAL "${wheels}/include")
        set(ATTNJIT_WHEELS_NVRTC "${wheels}/lib/libnvrtc.so.13" PARENT_SCOPE)
      endif()
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "No cuda.h and nvrtc.h of CUDA 12.4 or later. Looked in: ${folders}. "
                      "Run tools/setup, or set ATTNJIT_CUDA_INCLUDE_DIR to the folder of both.")
endfunction()
