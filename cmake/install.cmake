# find_package(Gossamer) gives Gossamer::core (torch-free headers) and, where it was built, Gossamer::gossamer.
include(CMakePackageConfigHelpers)
set(config_dir lib/cmake/Gossamer)

install(DIRECTORY include/gossamer/kernels DESTINATION include/gossamer FILES_MATCHING PATTERN "*.h")
install(TARGETS gossamer_core EXPORT GossamerCore)
install(EXPORT GossamerCore NAMESPACE Gossamer:: FILE GossamerCore.cmake DESTINATION ${config_dir})
if(GOSSAMER_TORCH)
  set_target_properties(gossamer PROPERTIES EXPORT_NAME gossamer)
  install(DIRECTORY include/gossamer DESTINATION include FILES_MATCHING PATTERN "*.h")
  install(TARGETS gossamer EXPORT GossamerTorch LIBRARY DESTINATION lib)
  install(FILES "${GOSSAMER_LIBRARY_DIR}/torch_version" DESTINATION lib)
  install(EXPORT GossamerTorch NAMESPACE Gossamer:: FILE GossamerTorch.cmake DESTINATION ${config_dir})
endif()
configure_package_config_file(cmake/GossamerConfig.cmake.in ${CMAKE_BINARY_DIR}/GossamerConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/GossamerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/GossamerConfig.cmake ${CMAKE_BINARY_DIR}/GossamerConfigVersion.cmake
        DESTINATION ${config_dir})
