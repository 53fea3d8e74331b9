# Installs this build into a scratch prefix, then configures, builds and runs a separate project against it. Warnings are
# errors there, as in the projects of careful users, and LD_LIBRARY_PATH does not help. The kernels' headers are compiled
# at -O1, which sees more to warn of; what includes torch takes a quarter less time at -O0, and its work is done in the
# library.
#
#   torch    where torch's package is; empty: there is none to be found
#   source   if given, the tree to install instead, without its torch front end
#   python   if given, an interpreter without torch that must be able to load the installed library
set(scratch "${build}/${name}")
file(REMOVE_RECURSE "${scratch}")
file(MAKE_DIRECTORY "${scratch}")
unset(ENV{LD_LIBRARY_PATH})
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${scratch}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
if(source)
  run(${CMAKE_COMMAND} -S "${source}" -B "${scratch}/core" -G Ninja -DGOSSAMER_TORCH=OFF -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON)
  set(build "${scratch}/core")  # headers alone: there is nothing to compile before they are installed
endif()
run(${CMAKE_COMMAND} --install "${build}" --prefix "${scratch}/prefix")
if(python)
  run(${python} -I -c "import ctypes; ctypes.CDLL('${scratch}/prefix/lib/libgossamer.so')")
endif()
set(level -O1)
if(torch)
  set(level -O0)
  set(where_torch_is "-DTorch_DIR=${torch}")
else()
  set(where_torch_is -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON)
endif()
run(${CMAKE_COMMAND} -S "${consumer}" -B "${scratch}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${scratch}/prefix"
    ${where_torch_is} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=${level} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Werror")
run(${CMAKE_COMMAND} --build "${scratch}/build")
string(REPLACE "," ";" programs "${program}")
foreach(each ${programs})
  run("${scratch}/build/${each}")
endforeach()
