#!/usr/bin/env bash
# Runs the validation set, and writes what README.md and docs/accuracy.md say of it.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/update_accuracy.sh [--bin TRN_SIM] [--limits] [ARGUMENT ...]

Writes the tables between the markers of README.md and docs/accuracy.md, docs/images/accuracy.png,
and the launch offsets that other rows are compared with. Arguments go to trn-sim validate.

  --limits   also keeps what is reached, with some room, as what later runs must reach

Example: scripts/update_accuracy.sh --jobs 2
USAGE
}

trn_sim=build/release/bin/trn-sim
limits=false
arguments=()
while (($#)); do
  case $1 in
    --bin) trn_sim=${2:?--bin needs a file}; shift ;;
    --limits) limits=true ;;
    -h | --help) usage; exit 0 ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
keep=()
if $limits; then keep=(--write-limits); fi
"$trn_sim" validate "${arguments[@]}" "${keep[@]}" --write-offsets --no-check --report json \
  -o "$folder/accuracy.json" --plot "$folder/accuracy"
if $limits; then
  for subset in ci mutation; do
    "$trn_sim" validate "${arguments[@]}" --subset "$subset" --write-limits -o "$folder/$subset.txt"
  done
fi
mkdir -p docs/images
mv "$folder/accuracy.png" docs/images/accuracy.png
PYTHONPATH="$(dirname "$trn_sim")/../share/trn-sim/python" /usr/bin/python3 \
  -m trnsim.validation.document "$folder/accuracy.json" README.md docs/accuracy.md
