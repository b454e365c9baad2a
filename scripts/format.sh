#!/usr/bin/env bash
# Formats every C++ file with the repository's .clang-format, or with --check lists those that are not.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
  echo "format: clang-format is not installed (Debian: apt-get install clang-format)" >&2
  exit 1
fi
files() { git ls-files -z -- '*.cpp' '*.h'; }
case "${1:-}" in
  "") files | xargs -0 clang-format -i ;;
  --check)
    if ! files | xargs -0 clang-format --dry-run --Werror; then
      echo "format: run scripts/format.sh" >&2
      exit 1
    fi
    ;;
  *)
    echo "usage: scripts/format.sh [--check]" >&2
    exit 2
    ;;
esac
