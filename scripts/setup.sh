#!/usr/bin/env bash
# Installs everything that building, testing and running need, from Debian 12's own packages.
# Asks nothing; does nothing when all of it is there; uses sudo only where not root.
set -euo pipefail

packages=(
  # tools
  g++ cmake ninja-build pkg-config ccache git ca-certificates zstd
  # the program
  libcli11-dev nlohmann-json3-dev libyaml-cpp-dev libfmt-dev
  libpcre2-dev libutf8proc-dev libxxhash-dev libdnnl-dev zlib1g-dev libzstd-dev libboost-dev
  libcpp-httplib-dev
  # training; without the OpenMP flavour of OpenBLAS LibTorch's products are hundreds of times slower
  libtorch-dev libgloo-dev libopenblas0-openmp
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
)

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
  done
else
  missing=("${packages[@]}")
fi

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "setup: installing ${#missing[@]} of ${#packages[@]} packages"
status=0
"$(dirname "$0")/debian-install.sh" setup "${missing[@]}" || status=$?
if [ $status -eq 3 ]; then
  echo "setup: then build with: cmake -S . -B build -G Ninja && ninja -C build" >&2
fi
exit $status
