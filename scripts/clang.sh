#!/bin/sh
# The library by clang as well as by g++, warnings being errors: the kernels with their tests, once for each instruction
# set; the front end in C++; every op through the table in Python. CLANG names another compiler, which wants its libomp.
set -eu
cd "$(dirname "$0")/.."
compiler=${CLANG:-clang++-16}
if ! command -v "$compiler" >/dev/null; then
  packages="clang-16 libomp-16-dev"
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null 2>&1 || true
    # shellcheck disable=SC2086  # two packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
  else
    echo "sudo apt-get install $packages" >&2
    exit 1
  fi
fi
configure() {
  folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
    -DCMAKE_CXX_COMPILER="$compiler" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "$@"
}
jobs=${JOBS:-$(nproc)}
configure build/clang_kernels -DGOSSAMER_TORCH=OFF -DGOSSAMER_TESTS=kernels
cmake --build build/clang_kernels -j"$jobs" --target kernel_tests
ctest --test-dir build/clang_kernels -R '^kernels_' --output-on-failure
configure build/clang -DGOSSAMER_TESTS=torch
cmake --build build/clang -j"$jobs" --target gossamer front_end_tests threads_tests
# torch's part is compiled for g++'s OpenMP, ours for clang's, which answers for both when it is loaded first.
LD_PRELOAD=$("$compiler" -print-file-name=libomp.so)
export LD_PRELOAD
build/clang/tests/cpp/front_end_tests --gtest_brief=1
build/clang/tests/cpp/threads_tests --gtest_brief=1
GOSSAMER_STANDIN=off GOSSAMER_LIBRARY="$PWD/build/clang/lib/libgossamer.so" .venv/bin/python -m pytest -n "$jobs" \
  -p no:cacheprovider tests/table tests/matrix -k "not compiles and not opcheck"
