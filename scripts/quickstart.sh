#!/usr/bin/env bash
# From a clean clone to the first reports.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: scripts/quickstart.sh [--no-setup] [--config MACHINE.yaml] [FILE.trn]

Sets up, builds trn-sim and trn-trace (release preset), assembles a shipped trace and prints the
report of its run. Without FILE.trn, it does the same with a kernel traced from Python.

  --no-setup  installs nothing
  --config    the machine to run on (default: trn2.3xlarge.yaml)
  FILE.trn    the trace as text (default: traces/attention_fused_bf16_s512.trn)

Example: scripts/quickstart.sh
USAGE
}

caller=$PWD
cd "$(dirname "$0")/.."
setup=true
config=trn2.3xlarge.yaml
program=traces/attention_fused_bf16_s512.trn
kernel=(traces/kernels/attention.py:fused
  --arg 'q=bf16[128,512]' --arg 'k=bf16[128,512]' --arg 'v=bf16[128,512]')
while (($#)); do
  case $1 in
    --no-setup) setup=false ;;
    --config) config=${2:?--config needs a machine}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "quickstart.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    *) program=$1; kernel=(); [[ $program == /* ]] || program=$caller/$program ;;
  esac
  shift
done

# Shows a step's output only when it fails.
quietly() {
  local log
  log=$(mktemp)
  "$@" > "$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; echo "quickstart.sh: failed: $*" >&2; exit 1; }
  rm -f "$log"
}

if $setup; then scripts/setup.sh; fi
echo "building trn-sim and trn-trace in build/release/bin ..." >&2
quietly cmake --preset release
quietly cmake --build --preset release --target trn-sim trn_python

trn_sim=build/release/bin/trn-sim
trace=build/quickstart/$(basename "$program" .trn).bin
mkdir -p build/quickstart
"$trn_sim" asm "$program" -o "$trace"
echo "\$ $trn_sim --config $config $trace" >&2
"$trn_sim" --config "$config" "$trace"

if ((${#kernel[@]})); then
  traced=build/quickstart/attention.bin
  printf '\n$ build/release/bin/trn-trace %s -o %s && %s --config %s %s\n' \
    "${kernel[*]}" "$traced" "$trn_sim" "$config" "$traced" >&2
  build/release/bin/trn-trace "${kernel[@]}" -o "$traced"
  "$trn_sim" --config "$config" "$traced"
fi
