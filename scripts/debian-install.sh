#!/usr/bin/env bash
# Installs Debian 12 packages for the scripts beside it: debian-install.sh NAME PACKAGE...
# NAME begins every message. Asks nothing; uses sudo only where not root. Status 3: this is not Debian 12.
set -euo pipefail

name=$1
shift

version=unknown
if [ -r /etc/os-release ]; then
  version=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
fi
if ! command -v apt-get >/dev/null || [ "$version" != "debian 12" ]; then
  {
    echo "$name: this script knows Debian 12 only, and this is: $version"
    echo "$name: install the equivalents of these packages yourself: $*"
  } >&2
  exit 3
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$name: not root and no sudo here; run as root: apt-get install -y --no-install-recommends $*" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Through env, since sudo drops the environment.
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"; }

echo "$name: installing from Debian: $*"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "$name: installing failed; the last lines of its output are above" >&2
  exit 1
fi
echo "$name: done"
