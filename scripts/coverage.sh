#!/usr/bin/env bash
# Which lines the tests reach.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/coverage.sh [--html DIR] [CTEST OPTION ...]

Builds the coverage preset, runs the tests (all, or those that the ctest options select), and prints
the share of lines reached for each source of isa/ and sim/.

  --html DIR  also writes the annotated sources to DIR

Example: scripts/coverage.sh --html build/coverage/html -L unit
USAGE
}

html=
selection=()
while (($#)); do
  case $1 in
    --html) html=${2:?--html needs a folder}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) selection+=("$1") ;;
  esac
  shift
done

build=build/coverage
cmake --preset coverage > /dev/null
cmake --build --preset coverage
rm -rf "$build/profiles"
ctest --preset coverage "${selection[@]}"

llvm-profdata-16 merge -sparse "$build"/profiles/*.profraw -o "$build/coverage.profdata"
binaries=()
for binary in "$build"/bin/*; do
  [[ -x $binary && -f $binary ]] && binaries+=(-object "$binary")
done
# The first binary goes without -object.
select=("${binaries[@]:1}" -instr-profile="$build/coverage.profdata" isa sim)
llvm-cov-16 report "${select[@]}"
if [[ -n $html ]]; then
  llvm-cov-16 show -format=html -output-dir="$html" "${select[@]}" > /dev/null
fi
