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

version=unknown
if [ -r /etc/os-release ]; then
  version=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
fi
if ! command -v apt-get >/dev/null || [ "$version" != "debian 12" ]; then
  {
    echo "setup: this script knows Debian 12 only, and this is: $version"
    echo "setup: install the equivalents of these packages yourself, then build with"
    echo "setup:   cmake -S . -B build -G Ninja && ninja -C build"
    echo "setup: missing: ${missing[*]}"
  } >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo here; run as root: apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Through env, since sudo drops the environment.
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"; }

echo "setup: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "setup: installing failed; the last lines of its output are above" >&2
  exit 1
fi
echo "setup: done"
