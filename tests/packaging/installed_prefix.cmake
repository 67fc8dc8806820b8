# attnjit_install_to(<prefix>): what <BUILD> installs. attnjit_run_example(<command>…): runs an
# example, which has status 0 with a GPU and 77, after it has compiled its kernels, without one.

function(attnjit_install_to prefix)
  file(REMOVE_RECURSE "${prefix}")  # a file that is installed no more must not linger and help
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(attnjit_run_example)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "ATTNJIT_CACHE_DIR=${WORK}/cache" ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status MATCHES "^(0|77)$")
    message(FATAL_ERROR "${ARGN} ended with status ${status}: ${output}")
  endif()
  message(STATUS "${output}")
endfunction()
