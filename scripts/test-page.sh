#!/usr/bin/env bash
# Tests the page of `sol serve` in a headless browser. Installs what is missing: Chromium, Node.js and npm from
# Debian, playwright-core from npm (its version is pinned in tests/page; it downloads no browser).
#
# SOL_BINARY: the program, default build/sol. SOL_CHROMIUM: the browser, default Debian's.
# SOL_SCREENSHOTS: a directory that gets screenshots; without it none are taken.
# Arguments go to Node's test runner: scripts/test-page.sh --test-name-pattern compare
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test-page: $*"; }
fail() { say "$*" >&2; exit 1; }

SOL_BINARY=$(realpath -m "${SOL_BINARY:-build/sol}")
[ -x "$SOL_BINARY" ] || fail "$SOL_BINARY is not there; build it first (scripts/build.sh)"
SOL_CHROMIUM=${SOL_CHROMIUM:-/usr/bin/chromium}
if [ -n "${SOL_SCREENSHOTS:-}" ]; then
  SOL_SCREENSHOTS=$(realpath -m "$SOL_SCREENSHOTS")
  export SOL_SCREENSHOTS
fi
export SOL_BINARY SOL_CHROMIUM

missing=()
[ -x "$SOL_CHROMIUM" ] || missing+=(chromium fonts-liberation)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  scripts/debian-install.sh test-page "${missing[@]}"
fi
[ -x "$SOL_CHROMIUM" ] || fail "no browser at $SOL_CHROMIUM (from SOL_CHROMIUM)"
version=$(node --version)
[ "$(cut -d. -f1 <<<"${version#v}")" -ge 18 ] || fail "Node.js 18 or later is needed, this is $version"

cd tests/page
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  say "installing playwright-core from npm"
  npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
fi
say "testing $SOL_BINARY in $("$SOL_CHROMIUM" --version 2>/dev/null) with Node.js $version"
exec node --test --test-reporter=spec "$@" page.test.js
