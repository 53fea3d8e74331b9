#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What can be said about the CUDA sources without a GPU: nvcc compiles every src/cuda/*.cu for each architecture we
# name, without a warning, and no kernel spills registers. Usage: nvcc_gate.sh [architecture ...]
set -eu
if ! command -v nvcc >/dev/null; then
  echo "skipped: no nvcc on PATH"
  exit 77
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

gencode=
archs=${*:-80 90 100 120}
for arch in $archs; do gencode="$gencode -gencode arch=compute_$arch,code=sm_$arch"; done

for source in "$root"/src/cuda/*.cu; do
  log=$out/$(basename "$source").log
  # shellcheck disable=SC2086  # one word an option
  if ! nvcc -std=c++20 -O3 --threads 2 -Werror all-warnings -Xptxas -v $gencode -I"$root/include" -I"$root/src/cuda" \
    -c "$source" -o "$out/object.o" >"$log" 2>&1; then
    grep -v '^ptxas info' "$log" || true
    echo "FAILED: $source does not compile"
    exit 1
  fi
  if grep -E '[1-9][0-9]* bytes spill' -B2 "$log"; then
    echo "FAILED: $source spills registers"
    exit 1
  fi
done
# The most registers of each kernel, over its types and layouts, on each architecture.
cat "$out"/*.log | awk -v archs="$archs" '
  /Compiling entry function/ {
    match($0, /(kernels|device)[0-9]+[a-z0-9_]*[a-z]I/)  # the name as the mangled one spells it, before its types
    name = substr($0, RSTART, RLENGTH - 1)
    sub(/^(kernels|device)[0-9]+/, "", name)
    match($0, /sm_[0-9]+/)
    arch = substr($0, RSTART, RLENGTH)
  }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    used = substr($0, RSTART + 5, RLENGTH - 5) + 0
    if (used > most[name " " arch]) most[name " " arch] = used
    names[name] = 1
  }
  END {
    count = split(archs, order, " ")
    for (name in names) {
      line = sprintf("%-24s", name)
      for (k = 1; k <= count; ++k) line = line sprintf(" sm_%s: %3d", order[k], most[name " sm_" order[k]])
      print line
    }
  }' | sort
kernels=$(cat "$out"/*.log | grep -c 'Compiling entry function' || true)
most=$(cat "$out"/*.log | sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' | sort -n | tail -1)
echo "nvcc: $kernels kernels compiled, no warning, no spill, at most ${most:-0} registers"
