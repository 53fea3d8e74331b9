# find_package(Gossamer) gives Gossamer::core (torch-free headers) and, where it was built, Gossamer::gossamer.
include(CMakePackageConfigHelpers)
set(config_dir lib/cmake/Gossamer)

install(DIRECTORY include/gossamer/kernels DESTINATION include/gossamer FILES_MATCHING PATTERN "*.h")
install(FILES include/gossamer/version.h DESTINATION include/gossamer)
install(TARGETS gossamer_core EXPORT GossamerCore)
install(EXPORT GossamerCore NAMESPACE Gossamer:: FILE GossamerCore.cmake DESTINATION ${config_dir})
if(GOSSAMER_TORCH)
  set_target_properties(gossamer PROPERTIES EXPORT_NAME gossamer)
  install(DIRECTORY include/gossamer DESTINATION include FILES_MATCHING PATTERN "*.h")
  install(TARGETS gossamer EXPORT GossamerTorch LIBRARY DESTINATION lib)
  install(FILES "${GOSSAMER_LIBRARY_DIR}/torch_version" DESTINATION lib)
  if(SKBUILD_PLATLIB_DIR)
    # A wheel goes to other machines: the folder of torch on this one is not for it. That is decided when it is installed,
    # because pip may share a build folder with `cmake --install`. (file(RPATH_CHANGE) is what CMake's own scripts call.)
    install(CODE "
      string(FIND \"\${CMAKE_INSTALL_PREFIX}/\" \"${SKBUILD_PLATLIB_DIR}/\" in_wheel)
      if(in_wheel EQUAL 0)
        file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/$<TARGET_FILE_NAME:gossamer>\"
             OLD_RPATH \"\\\$ORIGIN/../../torch/lib:${torch_library_dir}\" NEW_RPATH \"\\\$ORIGIN/../../torch/lib\")
      endif()")
  endif()
  install(EXPORT GossamerTorch NAMESPACE Gossamer:: FILE GossamerTorch.cmake DESTINATION ${config_dir})
endif()
configure_package_config_file(cmake/GossamerConfig.cmake.in ${CMAKE_BINARY_DIR}/GossamerConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/GossamerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/GossamerConfig.cmake ${CMAKE_BINARY_DIR}/GossamerConfigVersion.cmake
        DESTINATION ${config_dir})
