#!/usr/bin/env bash
# Makes what the simulator says now what the golden tests expect.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/update_golden.sh [--build-dir DIR]

Builds the golden tests and rewrites tests/golden/*/expected.json and tests/golden/traces.json. Look at
the difference before you commit it: the commit says why each number moved.

  --build-dir DIR  default: build/release

Example: scripts/update_golden.sh && git diff tests/golden
USAGE
}

build=build/release
while (($#)); do
  case $1 in
    --build-dir) build=${2:?--build-dir needs a folder}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "update_golden.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

[[ -d $build ]] || cmake --preset release -B "$build" > /dev/null
cmake --build "$build" --target trn_golden_tests
TRN_UPDATE_GOLDEN=1 "$build/bin/trn_golden_tests" --gtest_brief=1
git status --short tests/golden
