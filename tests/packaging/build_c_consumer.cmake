# cmake -DWAY=find_package|pkg_config -DSOURCE=… -DBUILD=… -DWORK=… -P this
# Builds the C example under <WORK>, outside attnjit's tree, against what the build folder <BUILD>
# installs, and runs it.
include("${CMAKE_CURRENT_LIST_DIR}/installed_prefix.cmake")
load_cache("${BUILD}" READ_WITH_PREFIX built_ CMAKE_CXX_FLAGS)  # sanitizers
set(examples "${WORK}/examples")
file(COPY "${SOURCE}/tools/examples" DESTINATION "${WORK}")

if(WAY STREQUAL "find_package")
  attnjit_install_to("${WORK}/c_prefix")
  file(REMOVE_RECURSE "${WORK}/from_c_package")
  file(COPY "${CMAKE_CURRENT_LIST_DIR}/c_consumer" DESTINATION "${WORK}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/c_prefix"
                          -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON "-DATTNJIT_EXAMPLES=${examples}"
                          "-DCMAKE_C_FLAGS=${built_CMAKE_CXX_FLAGS}"
                          -S "${WORK}/c_consumer" -B "${WORK}/from_c_package"
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/from_c_package"
                  COMMAND_ERROR_IS_FATAL ANY)
  attnjit_run_example("${WORK}/from_c_package/c_consumer")
  return()
endif()

attnjit_install_to("${WORK}/prefix_before")
file(REMOVE_RECURSE "${WORK}/prefix_after")
file(RENAME "${WORK}/prefix_before" "${WORK}/prefix_after")
file(GLOB_RECURSE package "${WORK}/prefix_after/*/attnjit.pc")
file(GLOB_RECURSE library "${WORK}/prefix_after/*/libattnjit.so")
cmake_path(GET package PARENT_PATH package_directory)
cmake_path(GET library PARENT_PATH library_directory)
find_program(pkg_config pkg-config REQUIRED)
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${package_directory}"
                        "${pkg_config}" --cflags --libs attnjit
                OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags} ${built_CMAKE_CXX_FLAGS}")
execute_process(COMMAND cc -std=c11 "${examples}/cuda_memory.c" "${examples}/host_attention.c"
                        "${examples}/mla_decode.c" ${flags} -lm -ldl -o "${WORK}/with_pkg_config"
                COMMAND_ERROR_IS_FATAL ANY)
attnjit_run_example("LD_LIBRARY_PATH=${library_directory}:$ENV{LD_LIBRARY_PATH}"
                    "${WORK}/with_pkg_config")
