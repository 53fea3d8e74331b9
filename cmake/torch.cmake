# Finds the torch of the Python environment that builds us, also from inside pip's isolated build (-I steps out of it),
# so that the library always matches the torch it will be loaded with.
set(GOSSAMER_TORCH_VERSION 2.13 CACHE STRING "The torch that Gossamer is written for. Its C++ interface changes from \
version to version: naming another here is an experiment")
if(NOT Torch_DIR AND NOT CMAKE_PREFIX_PATH MATCHES torch)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -I -c "import torch; print(torch.utils.cmake_prefix_path, torch.__version__)"
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT found)
    message(FATAL_ERROR "Gossamer builds against the torch of this environment, and ${Python_EXECUTABLE} has none: "
                        "pip install torch==${GOSSAMER_TORCH_VERSION}.0 first.")
  endif()
  string(REGEX REPLACE " .*" "" torch_prefix "${found}")
  message(STATUS "torch: ${found}")
  list(APPEND CMAKE_PREFIX_PATH "${torch_prefix}")
endif()
find_package(Torch REQUIRED)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_series "${Torch_VERSION}")
if(NOT torch_series STREQUAL GOSSAMER_TORCH_VERSION)
  message(FATAL_ERROR "Gossamer builds with torch ${GOSSAMER_TORCH_VERSION}, and the one in ${Torch_DIR} is "
                      "${Torch_VERSION}: pip install torch==${GOSSAMER_TORCH_VERSION}.0. To try it all the same, pass "
                      "-DGOSSAMER_TORCH_VERSION=${torch_series}.")
endif()
# Beside the library, for python/gossamer/_library.py: a library of another torch cannot even be asked.
file(WRITE "${GOSSAMER_LIBRARY_DIR}/torch_version" "${torch_series}\n")
