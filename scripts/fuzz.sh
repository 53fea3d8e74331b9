#!/bin/sh
# The long run of the fuzzers, as `make fuzz`: about ten million executions, each with the seed that is given. What is
# found is told with the input, or with the number of the execution: see tests/fuzz/README.md.
#
#   scripts/fuzz.sh [SEED] [MILLIONS]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
seed=${1:-1}
millions=${2:-10}
cd "$root/build/dev/tests/fuzz"
for target in mtx:40 npz:40 file:8; do
  noun=${target%:*}
  ./fuzz_$noun --executions $((millions * ${target#*:} * 10000)) --seed "$seed" "$root/tests/fuzz/corpus/$noun"
done
cd "$root"
for target in ops:1000 planetoid:60 graph_folder:40 npz:60 matrix_state:37 command_line:3; do
  OMP_NUM_THREADS=1 scripts/sanitized.sh python -W ignore tests/fuzz/run.py "${target%:*}" \
    --executions $((millions * ${target#*:} * 100)) --seed "$seed"
done
