#!/bin/sh
# Runs a command, such as python -m pytest tests/table, with the library of the dev preset, which reads and writes under
# AddressSanitizer and UndefinedBehaviorSanitizer. A sanitizer must be there before Python: it is preloaded, with the C++
# library, whose exceptions it follows. Python frees nothing at its end, so leaks are not looked for; the stand-in for
# cuda is a release build and stays out. Reports go to files, because pytest keeps what a process prints until it ends.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CXX:-c++}
preloaded=""
for name in libasan.so libubsan.so libstdc++.so; do
  preloaded="$preloaded $("$compiler" -print-file-name=$name)"
done
report="$root/build/dev/sanitizer_report"
rm -f "$report".*
status=0
LD_PRELOAD="$preloaded" ASAN_OPTIONS="detect_leaks=0:log_path=$report" GOSSAMER_STANDIN=off \
  UBSAN_OPTIONS="print_stacktrace=1:log_path=$report" \
  GOSSAMER_LIBRARY="$root/build/dev/lib/libgossamer.so" "$@" || status=$?
for file in "$report".*; do
  [ -e "$file" ] && cat "$file" && status=1
done
exit $status
