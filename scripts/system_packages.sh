#!/bin/sh
# What only the system has: GoogleTest (needed), ccache (wanted). Installed with apt-get where that is allowed,
# otherwise named in one line.
set -eu
missing=""
[ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ] || missing="libgtest-dev"
command -v ccache >/dev/null || missing="$missing ccache"
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing from the system's packages: $missing"
  # shellcheck disable=SC2086
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing) >/dev/null 2>&1 || true
fi
[ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ] || {
  echo "Gossamer's tests need GoogleTest from the system's packages: sudo apt-get install libgtest-dev" >&2
  exit 1
}
