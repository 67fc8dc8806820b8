# attnjit_embed_files(<target> <symbol> ROOT <dir> FILES <path from ROOT>…): builds the files into
# <target> as `const std::span<const attnjit::EmbeddedFile> attnjit::<symbol>`, sorted by name. The
# code that uses them declares that variable `extern` and must see attnjit/embedded_file.hpp; the
# span is constant-initialised, so it may be read during static initialisation. An edited file is
# embedded again by the next build.
function(attnjit_embed_files target symbol)
  cmake_parse_arguments(arg "" "ROOT" "FILES" ${ARGN})
  if(NOT arg_ROOT OR NOT arg_FILES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attnjit_embed_files(${target} ${symbol}): give ROOT <dir> and "
                        "FILES <path>…, nothing else (unexpected: '${arg_UNPARSED_ARGUMENTS}')")
  endif()
  get_filename_component(root "${arg_ROOT}" ABSOLUTE)
  set(names ${arg_FILES})
  list(SORT names)
  list(REMOVE_DUPLICATES names)
  set(paths ${names})
  list(TRANSFORM paths PREPEND "${root}/")

  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/attnjit_embed_script.cmake")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp")
  set(list_file "${CMAKE_CURRENT_BINARY_DIR}/${symbol}_files.cmake")
  # Rewritten only when it differs: a changed set of files rebuilds, a mere reconfigure does not.
  file(CONFIGURE OUTPUT "${list_file}" CONTENT [[set(names "@names@")
]] @ONLY)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${root}" "-DSYMBOL=${symbol}" "-DLIST_FILE=${list_file}"
            "-DOUTPUT=${output}" -P "${script}"
    DEPENDS ${paths} "${list_file}" "${script}"
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
