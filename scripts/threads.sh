#!/bin/sh
# One matrix, one factor, one layer for eight threads at once, in both front ends, with the whole library under
# ThreadSanitizer. torch and Python are compiled without it: locks are seen all the same, for the sanitizer stands in for
# pthread's, but not the counters by which torch shares tensors. tests/cpp/threads/suppressions.txt names torch's and
# Python's libraries, and nothing of ours. Each thread computes by itself: OpenMP's barriers would not be seen, either.
set -eu
cd "$(dirname "$0")/.."
[ -f build/threads/build.ninja ] || cmake --preset threads
cmake --build --preset threads -j"${JOBS:-$(nproc)}" --target gossamer threads_tests
compiler=${CXX:-c++}
export TSAN_OPTIONS="suppressions=$PWD/tests/cpp/threads/suppressions.txt:exitcode=66:ignore_noninstrumented_modules=1"
export OMP_NUM_THREADS=1 GOSSAMER_STANDIN=off
# The sanitizer wants the address space as it was before systems drew more of it at random.
fixed="setarch $(uname -m) -R"
GOSSAMER_THREADS_ROUNDS="${ROUNDS:-5}" $fixed build/threads/tests/cpp/threads_tests
LD_PRELOAD="$("$compiler" -print-file-name=libtsan.so)" GOSSAMER_LIBRARY="$PWD/build/threads/lib/libgossamer.so" \
  $fixed .venv/bin/python -m pytest -x -p no:cacheprovider tests/state/test_threads.py
