# One static library per folder, all built with the same language level and warnings.

function(attnjit_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wpedantic
                                           -Wnon-virtual-dtor -Wold-style-cast -Wunused
                                           -Wzero-as-null-pointer-constant)
  # At -O3 this GCC sees its own std::string copy over itself where it does not.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Wno-restrict>)
  endif()
  if(ATTNJIT_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  get_target_property(type ${target} TYPE)
  if(ATTNJIT_STATIC_FMT AND type MATCHES "EXECUTABLE|SHARED_LIBRARY")
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# attnjit_add_library(generator SOURCES a.cpp b.cpp): the target attnjit_generator, alias
# attnjit::generator, with <folder>/include public and <folder>/src private; installed, and part of
# attnjit::attnjit.
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
  set_property(GLOBAL APPEND PROPERTY attnjit_libraries ${name})
endfunction()

# attnjit::attnjit: every library of the project, under one name.
function(attnjit_add_aggregate)
  get_property(names GLOBAL PROPERTY attnjit_libraries)
  add_library(attnjit_all INTERFACE)
  add_library(attnjit::attnjit ALIAS attnjit_all)
  set_target_properties(attnjit_all PROPERTIES EXPORT_NAME attnjit)
  foreach(name IN LISTS names)
    target_link_libraries(attnjit_all INTERFACE attnjit_${name})
    # nlohmann/json is compiled in, so an installed attnjit must not make its users find it.
    get_target_property(links attnjit_${name} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(REMOVE_ITEM links "$<LINK_ONLY:nlohmann_json::nlohmann_json>")
      set_property(TARGET attnjit_${name} PROPERTY INTERFACE_LINK_LIBRARIES "${links}")
    endif()
  endforeach()
endfunction()

# attnjit_shared, alias attnjit::shared: libattnjit.so.<major>, which holds every library of the
# project and shows the C interface alone. It is never unloaded: what it gave to the driver stays.
function(attnjit_add_shared_library)
  set(exports "${attnjit_SOURCE_DIR}/tools/cmake/attnjit_exports.map")
  add_library(attnjit_shared SHARED "${exports}")
  add_library(attnjit::shared ALIAS attnjit_shared)
  set_target_properties(attnjit_shared PROPERTIES
                        EXPORT_NAME shared OUTPUT_NAME attnjit LINKER_LANGUAGE CXX
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                        LINK_DEPENDS "${exports}")
  attnjit_configure_target(attnjit_shared)
  set_property(TARGET attnjit_shared PROPERTY INTERFACE_COMPILE_FEATURES)  # its header is C
  target_include_directories(attnjit_shared PUBLIC
                             $<BUILD_INTERFACE:${attnjit_SOURCE_DIR}/runtime/include>
                             $<INSTALL_INTERFACE:include>)
  target_link_libraries(attnjit_shared PRIVATE
                        "$<LINK_LIBRARY:WHOLE_ARCHIVE,attnjit_runtime>")
  target_link_options(attnjit_shared PRIVATE "LINKER:--version-script=${exports}"
                      LINKER:--no-undefined LINKER:-z,nodelete)
endfunction()
