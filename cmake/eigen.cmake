# Finds Eigen's headers: the system's or, as torch is found, those of PyPI's cmeel-eigen in the Python environment.
find_package(Eigen3 3.4 QUIET NO_MODULE)
if(NOT TARGET Eigen3::Eigen)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  foreach(isolation "" -I)  # pip's isolated build has it; a plain environment may
    execute_process(COMMAND ${Python_EXECUTABLE} ${isolation} -c
                            "import pathlib, sys; print(';'.join(str(pathlib.Path(p) / 'cmeel.prefix/include/eigen3') for p in sys.path))"
                    OUTPUT_VARIABLE folders ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND eigen_folders ${folders})
  endforeach()
  find_path(EIGEN_INCLUDE_DIR Eigen/SparseLU PATHS ${eigen_folders} REQUIRED NO_DEFAULT_PATH)
  add_library(Eigen3::Eigen INTERFACE IMPORTED)
  target_include_directories(Eigen3::Eigen SYSTEM INTERFACE ${EIGEN_INCLUDE_DIR})
  message(STATUS "Eigen: ${EIGEN_INCLUDE_DIR}")
endif()
