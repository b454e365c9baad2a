#!/usr/bin/env bash
# Installs what is needed, builds, and runs the quick tests through CTest; --all: the long ones, too. Safe to run again.
# Other arguments go to CMake: ./test.sh --all -DSOL_WERROR=ON
set -euo pipefail
cd "$(dirname "$0")"

labels=quick
if [ "${1-}" = --all ]; then
  labels='quick|long'
  shift
fi

scripts/setup.sh
scripts/build.sh -DSOL_TESTS=ON "$@"
ctest --test-dir build -L "^($labels)\$" --parallel 2 --output-on-failure
