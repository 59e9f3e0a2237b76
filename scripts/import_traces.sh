#!/usr/bin/env bash
# Imports the shipped device profiles again and writes them as text to traces/.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/import_traces.sh [--trn-sim PATH] [PROFILE.json ...]

Turns each profile (by default those in tests/data/profiles/) into traces/NAME.trn. Run it when the
importer or the text form has changed; a test compares traces/ with a fresh import.

  --trn-sim PATH   the command to use (default: build/release/bin/trn-sim)

Example: scripts/import_traces.sh --trn-sim build/dev/bin/trn-sim
USAGE
}

trn_sim=build/release/bin/trn-sim
profiles=()
while (($#)); do
  case $1 in
    --trn-sim) trn_sim=${2:?--trn-sim needs a path}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "import_traces.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    *) profiles+=("$1") ;;
  esac
  shift
done
((${#profiles[@]})) || profiles=(tests/data/profiles/*.json)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for profile in "${profiles[@]}"; do
  name=$(basename "$profile" .json)
  "$trn_sim" import "$profile" -o "$work/$name.trace"
  "$trn_sim" dump "$work/$name.trace" > "$work/$name.trn"
  mv "$work/$name.trn" "traces/$name.trn"
  echo "traces/$name.trn"
done
