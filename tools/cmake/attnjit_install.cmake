# Install rules and the CMake package: find_package(attnjit) gives attnjit::attnjit and one target
# per folder, all static, and attnjit::shared, the C interface; attnjit.pc is the latter's.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(attnjit_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attnjit")
get_property(names GLOBAL PROPERTY attnjit_libraries)
foreach(name IN LISTS names)
  install(TARGETS attnjit_${name} EXPORT attnjit_targets ARCHIVE)
  install(DIRECTORY "${attnjit_SOURCE_DIR}/${name}/include/" TYPE INCLUDE)
endforeach()
install(TARGETS attnjit_all EXPORT attnjit_targets)
if(TARGET attnjit_shared)
  # An export of its own: what static libraries need, their users have to find.
  install(TARGETS attnjit_shared EXPORT attnjit_shared_targets LIBRARY)
  install(EXPORT attnjit_shared_targets NAMESPACE attnjit:: FILE attnjitSharedTargets.cmake
          DESTINATION "${attnjit_package_dir}")
  # Found from where the file lies, so that a whole prefix may be moved.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR
             BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}" OUTPUT_VARIABLE attnjit_to_include)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/attnjit.pc.in" "${attnjit_BINARY_DIR}/attnjit.pc" @ONLY)
  install(FILES "${attnjit_BINARY_DIR}/attnjit.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
# Argument structs that host and device share: `#include "interface/…"` works from the installed
# headers as it does from the templates' root.
install(DIRECTORY "${attnjit_SOURCE_DIR}/templates/interface"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/attnjit/templates")
if(TARGET attnjit_command)
  install(TARGETS attnjit_command RUNTIME)
endif()
if(TARGET attnjit_command AND NOT CMAKE_CROSSCOMPILING)
  get_target_property(command_directory attnjit_command BINARY_DIR)
  set(share "${command_directory}/share")
  install(FILES "${share}/attnjit.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${share}/attnjit.bash" RENAME attnjit
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${share}/_attnjit" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${share}/attnjit.fish"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

install(EXPORT attnjit_targets NAMESPACE attnjit:: FILE attnjitTargets.cmake
        DESTINATION "${attnjit_package_dir}")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/attnjitConfig.cmake.in" "${attnjit_BINARY_DIR}/attnjitConfig.cmake"
  INSTALL_DESTINATION "${attnjit_package_dir}")
write_basic_package_version_file("${attnjit_BINARY_DIR}/attnjitConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${attnjit_BINARY_DIR}/attnjitConfig.cmake"
              "${attnjit_BINARY_DIR}/attnjitConfigVersion.cmake"
        DESTINATION "${attnjit_package_dir}")
