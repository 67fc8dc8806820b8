# cmake -DWAY=find_package|add_subdirectory|fetch_content -DSOURCE=… -DBUILD=… -DWORK=… -P this
# Builds tests/packaging/consumer under <WORK>, outside attnjit's tree, and runs it. find_package
# uses what the build folder <BUILD> installs; the other two compile <SOURCE>.
set(options "-DATTNJIT_FROM=${WAY}" "-DATTNJIT_SOURCE=${SOURCE}" "-DCMAKE_BUILD_TYPE=Debug")
if(LAUNCHER)
  list(APPEND options "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
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
