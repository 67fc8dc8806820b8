# cmake -DWAY=find_package|add_subdirectory|fetch_content -DSOURCE=… -DBUILD=… -DWORK=… -P this
# Builds tests/packaging/consumer and the examples under <WORK>, outside attnjit's tree, and runs
# them. find_package uses what the build folder <BUILD> installs; the other two compile <SOURCE>
# with the same settings as <BUILD>, so that ccache, where it is installed, has every object
# already.
include("${CMAKE_CURRENT_LIST_DIR}/installed_prefix.cmake")
set(options "-DATTNJIT_FROM=${WAY}" "-DATTNJIT_SOURCE=${SOURCE}"
            "-DATTNJIT_EXAMPLES=${WORK}/examples")
load_cache("${BUILD}" READ_WITH_PREFIX built_ CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS
           ATTNJIT_CUDA_INCLUDE_DIR ATTNJIT_STATIC_FMT ATTNJIT_WARNINGS_AS_ERRORS)
foreach(setting IN ITEMS CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS
                         ATTNJIT_CUDA_INCLUDE_DIR ATTNJIT_STATIC_FMT ATTNJIT_WARNINGS_AS_ERRORS)
  list(APPEND options "-D${setting}=${built_${setting}}")
endforeach()
list(APPEND options "-DCMAKE_C_FLAGS=${built_CMAKE_CXX_FLAGS}")  # sanitizers
find_program(ccache ccache)
if(ccache)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${ccache}")
  set(ENV{CCACHE_NOHASHDIR} 1)  # build folders share objects
endif()

if(WAY STREQUAL "find_package")
  set(binaries "${WORK}/from_package")
  attnjit_install_to("${WORK}/prefix")
  file(REMOVE_RECURSE "${binaries}")
  list(APPEND options "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
else()
  set(binaries "${WORK}/from_source")
endif()

file(COPY "${CMAKE_CURRENT_LIST_DIR}/consumer" "${SOURCE}/tools/examples" DESTINATION "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja ${options} -S "${WORK}/consumer"
                        -B "${binaries}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${binaries}" --target consumer
                        attnjit_mla_decode_example attnjit_decode_loop_example
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${binaries}/consumer" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
if(NOT output STREQUAL "paged_decode_sm80\n")
  message(FATAL_ERROR "consumer printed '${output}' instead of the kernel's name")
endif()
attnjit_run_example("${binaries}/examples/attnjit_mla_decode_example")
attnjit_run_example("${binaries}/examples/attnjit_decode_loop_example")
