#!/usr/bin/env bash
# Everything that has to pass before a change goes in.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/test.sh [--quick] [--sanitize] [--no-setup] [--fuzz-seconds N]

Sets up, checks the format, builds the release preset, runs clang-tidy over the sources, fuzzes each
target for N seconds under ASan and UBSan, and runs all tests.

  --quick           only format, release build and tests
  --sanitize        also the unit tests under ASan and UBSan
  --no-setup        installs nothing
  --fuzz-seconds N  default: 60

Example: scripts/test.sh --quick
USAGE
}

quick=false
sanitize=false
setup=true
fuzz_seconds=60
while (($#)); do
  case $1 in
    --quick) quick=true ;;
    --sanitize) sanitize=true ;;
    --no-setup) setup=false ;;
    --fuzz-seconds) fuzz_seconds=${2:?--fuzz-seconds needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

start=$SECONDS
step() {
  printf '\n== %s (at %d:%02d)\n' "$*" $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60))
}

if $setup; then
  step setup
  scripts/setup.sh
fi

step format
scripts/lint.sh --format-only

step build
cmake --preset release > /dev/null
cmake --build --preset release

if ! $quick; then
  step clang-tidy
  scripts/lint.sh --tidy-only --sources

  step fuzz
  scripts/fuzz.sh --seconds "$fuzz_seconds"
fi

if $sanitize; then
  step sanitizers
  cmake --preset asan > /dev/null
  cmake --build --preset asan
  ctest --preset asan
fi

step tests
ctest --preset release
