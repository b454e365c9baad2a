#!/usr/bin/env bash
# Configures and builds build/, the one build folder that quickstart.sh and test.sh share.
# Arguments go to CMake: scripts/build.sh -DSOL_WERROR=ON
set -euo pipefail
cd "$(dirname "$0")/.."

# A build folder made in another place, or by another generator, would only confuse CMake.
if [ -f build/CMakeCache.txt ] &&
  { ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/CMakeCache.txt ||
    ! grep -qxF "CMAKE_GENERATOR:INTERNAL=Ninja" build/CMakeCache.txt; }; then
  echo "build: build/ belongs to another checkout or generator; making it anew"
  rm -rf build
fi

# LibTorch's headers need about 1.5 GB per compilation, so memory limits the number of jobs too.
jobs=$(nproc)
memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
by_memory=$((memory_kb / 1500000))
[ "$by_memory" -ge 1 ] || by_memory=1
[ "$jobs" -le "$by_memory" ] || jobs=$by_memory

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: CMake failed; its output is above" >&2
  exit 1
fi
echo "build: $jobs jobs, in build/"
quiet=(--quiet)
[ ! -t 1 ] || quiet=()
ninja -C build -j "$jobs" "${quiet[@]}"
