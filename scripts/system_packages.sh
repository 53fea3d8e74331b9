#!/bin/sh
# What only the system has: GoogleTest (needed); ccache and chromium, which opens the report in a test (wanted, asked for
# once). Installed with apt-get where that is allowed, otherwise named in one line.
set -eu
cd "$(dirname "$0")/.."
gtest() { [ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ]; }
missing=""
gtest || missing="libgtest-dev"
if [ ! -e .venv/.wanted ]; then
  for program in ccache chromium; do
    command -v "$program" >/dev/null || missing="$missing $program"
  done
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
