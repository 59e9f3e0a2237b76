#!/usr/bin/env bash
# Runs the libFuzzer targets under ASan and UBSan and checks how far they reached.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'USAGE'
usage: scripts/fuzz.sh [--seconds N] [--jobs N] [TARGET ...]

Builds the fuzz preset and runs each target (all by default) for N seconds on its corpus in
tests/fuzz/corpus/. Inputs found on the way stay in build/fuzz/corpus/, and one that fails in
build/fuzz/artifacts/. Fails on a finding, or when a target reached fewer lines of the files that
it is for than its floor (see tests/fuzz/CMakeLists.txt).

  --seconds N   fuzzing time for each target (default: 60)
  --jobs N      targets at a time (default: number of processors)

Example: scripts/fuzz.sh --seconds 600 fuzz_trace
USAGE
}

seconds=60
jobs=$(nproc)
wanted=()
while (($#)); do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "fuzz.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    *) wanted+=("$1") ;;
  esac
  shift
done

build=build/fuzz
cmake --preset fuzz > /dev/null
cmake --build --preset fuzz

# A line a target: name, floor in % of lines, files with commas between them.
declare -A floors covers
names=()
while read -r name floor files; do
  [[ -n $name ]] || continue
  names+=("$name")
  floors[$name]=$floor
  covers[$name]=${files//,/ }
done < "$build/fuzz_targets.txt"

for name in "${wanted[@]}"; do
  [[ -n ${floors[$name]:-} ]] || { echo "fuzz.sh: no target '$name'; there are: ${names[*]}" >&2; exit 2; }
done
((${#wanted[@]})) && names=("${wanted[@]}")
if ((${#names[@]} == 0)); then
  echo "fuzz.sh: no targets" >&2
  exit 0
fi

symbolizer=$(command -v llvm-symbolizer-16 || true)
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1${symbolizer:+:external_symbolizer_path=$symbolizer}
export UBSAN_OPTIONS=print_stacktrace=1${symbolizer:+:external_symbolizer_path=$symbolizer}

fuzz_one() {
  local name=$1 seeds=tests/fuzz/corpus/$1 found=$build/corpus/$1 artifacts=$build/artifacts/$1
  local profiles=$build/profiles/$1 log=$build/logs/$1.log
  mkdir -p "$found" "$artifacts" "$profiles" "$(dirname "$log")"
  [[ -d $seeds ]] || { echo "$name: no corpus in $seeds"; return 1; }

  if ! LLVM_PROFILE_FILE=/dev/null "$build/bin/$name" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -artifact_prefix="$artifacts/" -print_final_stats=1 \
    "$found" "$seeds" > "$log" 2>&1; then
    tail -n 60 "$log"
    echo "$name: failed; the input is in $artifacts"
    return 1
  fi
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")

  rm -f "$profiles"/*
  LLVM_PROFILE_FILE=$profiles/run.profraw "$build/bin/$name" -runs=0 "$found" "$seeds" \
    >> "$log" 2>&1
  llvm-profdata-16 merge -sparse "$profiles/run.profraw" -o "$profiles/run.profdata"
  # Word splitting of the file list is meant.
  local percent
  percent=$(llvm-cov-16 export -summary-only "$build/bin/$name" \
    -instr-profile="$profiles/run.profdata" ${covers[$name]} |
    python3 -c 'import json, sys; print("%.1f" % json.load(sys.stdin)["data"][0]["totals"]["lines"]["percent"])')
  echo "$name: $runs runs in $seconds s, no finding; $percent % of the lines of ${covers[$name]}" \
    "(floor ${floors[$name]} %)"
  awk -v got="$percent" -v floor="${floors[$name]}" 'BEGIN { exit !(got >= floor) }' || {
    echo "$name: failed; it reached less than its floor"
    return 1
  }
}

failed=0
running=0
for name in "${names[@]}"; do
  if ((running >= jobs)); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz_one "$name" &
  running=$((running + 1))
done
while ((running > 0)); do
  wait -n || failed=1
  running=$((running - 1))
done
exit "$failed"
