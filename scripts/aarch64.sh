#!/bin/sh
# The torch-free core on aarch64: its kernels and tests (src/cpu, tests/kernels) cross-compiled, optimised as they ship, and
# executed by qemu, so that code which only x86-64 runs is not the only code that is tested. GoogleTest is compiled from
# the system's source, because its library is for the machine at hand. torch's part is neither compiled nor run here.
set -eu
cd "$(dirname "$0")/.."
compiler=aarch64-linux-gnu-g++
emulator=qemu-aarch64
if ! command -v $compiler >/dev/null || ! command -v $emulator >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++-aarch64-linux-gnu qemu-user >/dev/null
  else
    echo "sudo apt-get install g++-aarch64-linux-gnu qemu-user" >&2
    exit 1
  fi
fi
cmake -S . -B build/aarch64 -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$compiler -DCMAKE_C_COMPILER=${compiler%g++}gcc -Wno-deprecated \
  -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator;-L;/usr/aarch64-linux-gnu" \
  -DGOSSAMER_TORCH=OFF -DGOSSAMER_TESTS=kernels -DGOSSAMER_GTEST_SOURCE="${GTEST_SOURCE:-/usr/src/googletest}"
cmake --build build/aarch64 -j"${JOBS:-$(nproc)}" --target kernel_tests
exec ctest --test-dir build/aarch64 -R '^kernels_baseline$' --verbose
