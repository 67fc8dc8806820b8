# One static library per folder, all built with the same language level and warnings.

function(attnjit_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wpedantic
                                           -Wnon-virtual-dtor -Wold-style-cast -Wunused)
  if(ATTNJIT_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# attnjit_add_library(generator SOURCES a.cpp b.cpp): the target attnjit_generator, alias
# attnjit::generator, with <folder>/include public and <folder>/src private.
function(attnjit_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(target attnjit_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(attnjit::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                     $<INSTALL_INTERFACE:include> PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  attnjit_configure_target(${target})
endfunction()
