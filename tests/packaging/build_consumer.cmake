# cmake -DWAY=find_package|add_subdirectory|fetch_content -DSOURCE=… -DBUILD=… -DWORK=… -P this
# Builds tests/packaging/consumer under <WORK>, outside attnjit's tree, and runs it. find_package
# uses what the build folder <BUILD> installs; the other two compile <SOURCE> with the same settings
# as <BUILD>, so that ccache, where it is installed, has every object already.
set(options "-DATTNJIT_FROM=${WAY}" "-DATTNJIT_SOURCE=${SOURCE}")
load_cache("${BUILD}" READ_WITH_PREFIX built_ CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS
           ATTNJIT_CUDA_INCLUDE_DIR ATTNJIT_STATIC_FMT ATTNJIT_WARNINGS_AS_ERRORS)
foreach(setting IN ITEMS CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS
                         ATTNJIT_CUDA_INCLUDE_DIR ATTNJIT_STATIC_FMT ATTNJIT_WARNINGS_AS_ERRORS)
  list(APPEND options "-D${setting}=${built_${setting}}")
endforeach()
find_program(ccache ccache)
if(ccache)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${ccache}")
  set(ENV{CCACHE_NOHASHDIR} 1)  # build folders share objects
endif()

if(WAY STREQUAL "find_package")
  set(binaries "${WORK}/from_package")
  set(prefix "${WORK}/prefix")
  # A file that is installed no more must not linger and help.
  file(REMOVE_RECURSE "${prefix}" "${binaries}")
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND options "-DCMAKE_PREFIX_PATH=${prefix}")
else()
  set(binaries "${WORK}/from_source")
endif()

file(COPY "${CMAKE_CURRENT_LIST_DIR}/consumer" DESTINATION "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja ${options} -S "${WORK}/consumer"
                        -B "${binaries}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${binaries}" --target consumer
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${binaries}/consumer" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output STREQUAL "paged_decode_sm80\n")
  message(FATAL_ERROR "consumer printed '${output}' instead of the kernel's name")
endif()
