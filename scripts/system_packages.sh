#!/bin/sh
# What only the system has: GoogleTest (needed); ccache, chromium, which opens the report in a test, and SuiteSparse, whose
# engines are tested, with the headers that our declarations are compared to (wanted, asked for once). Installed with
# apt-get where that is allowed, otherwise named in one line.
set -eu
cd "$(dirname "$0")/.."
gtest() { [ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ]; }
suitesparse() { [ -e /usr/include/suitesparse/cholmod.h ] || [ -e /usr/local/include/suitesparse/cholmod.h ]; }
missing=""
gtest || missing="libgtest-dev"
if [ ! -e .venv/.wanted ] || [ scripts/system_packages.sh -nt .venv/.wanted ]; then
  for program in ccache chromium; do
    command -v "$program" >/dev/null || missing="$missing $program"
  done
  suitesparse || missing="$missing libsuitesparse-dev"
fi
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing from the system's packages: $missing"
  apt-get update -qq >/dev/null 2>&1 || true
  for package in $missing; do  # one by one: not every system has each
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || true
  done
fi
touch .venv/.wanted
gtest || {
  echo "Gossamer's tests need GoogleTest from the system's packages: sudo apt-get install libgtest-dev" >&2
  exit 1
}
suitesparse || echo "without SuiteSparse its engines are not tested: sudo apt-get install libsuitesparse-dev" >&2
