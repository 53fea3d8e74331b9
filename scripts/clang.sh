#!/bin/sh
# The torch-free core by clang: its kernels and tests (src/cpu, tests/kernels), warnings being errors, run once for each
# instruction set. CLANG names another compiler than the system's clang++. torch's part is not compiled here.
set -eu
cd "$(dirname "$0")/.."
compiler=${CLANG:-clang++}
if ! command -v "$compiler" >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends clang >/dev/null
  else
    echo "sudo apt-get install clang" >&2
    exit 1
  fi
fi
cmake -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
  -DCMAKE_CXX_COMPILER="$compiler" -DGOSSAMER_TORCH=OFF -DGOSSAMER_TESTS=kernels
cmake --build build/clang -j"${JOBS:-$(nproc)}" --target kernel_tests
exec ctest --test-dir build/clang -R '^kernels_' --output-on-failure
