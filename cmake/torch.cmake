# Finds the torch of the Python environment that builds us, also from inside pip's isolated build (-I steps out of it),
# so that the library always matches the torch it will be loaded with.
if(NOT Torch_DIR AND NOT CMAKE_PREFIX_PATH MATCHES torch)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -I -c "import torch; print(torch.utils.cmake_prefix_path, torch.__version__)"
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT found)
    message(FATAL_ERROR "Gossamer builds against the torch of this environment, and ${Python_EXECUTABLE} has none: "
                        "pip install torch==2.13.0 first.")
  endif()
  string(REGEX REPLACE " .*" "" torch_prefix "${found}")
  message(STATUS "torch: ${found}")
  list(APPEND CMAKE_PREFIX_PATH "${torch_prefix}")
endif()
