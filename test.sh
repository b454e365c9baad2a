#!/usr/bin/env bash
# Installs what is needed, builds, and runs every quick test through CTest. Safe to run again.
# Arguments go to CMake: ./test.sh -DSOL_WERROR=ON
set -euo pipefail
cd "$(dirname "$0")"

scripts/setup.sh
scripts/build.sh -DSOL_TESTS=ON "$@"
ctest --test-dir build -L quick --parallel 2 --output-on-failure
