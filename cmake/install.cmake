# What `cmake --install` gives other programs, by component: `runtime` (libplumbline.so.<major>),
# `development` (headers, what find_package() and pkg-config read) and `program` (plumb and what lies
# beside it: cli/CMakeLists.txt). All may be moved together.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/plumbline")
install(TARGETS plumbline EXPORT plumbline
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# The other headers of include/plumbline belong to the libraries inside, whose symbols are hidden.
install(FILES include/plumbline/c_api.h include/plumbline/cxx_api.h
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/plumbline" COMPONENT development)
install(EXPORT plumbline NAMESPACE plumbline:: FILE plumbline-targets.cmake
  DESTINATION "${package_dir}" COMPONENT development)
configure_package_config_file(cmake/package/plumbline-config.cmake.in plumbline-config.cmake
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(plumbline-config-version.cmake COMPATIBILITY SameMinorVersion)
# Relative to the file itself, which pkg-config resolves.
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
configure_file(cmake/package/plumbline.pc.in plumbline.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/plumbline-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/plumbline-config-version.cmake"
  DESTINATION "${package_dir}" COMPONENT development)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/plumbline.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
