#!/usr/bin/env bash
# Prints the table of README.md that sets predictions beside the five profiles.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  cat <<'USAGE'
usage: scripts/accuracy_table.sh [--bin TRN_SIM]

Replays the shipped profiles and prints one Markdown row each.

Example: scripts/accuracy_table.sh --bin build/release/bin/trn-sim
USAGE
  exit 0
fi
trn_sim=build/release/bin/trn-sim
if [[ ${1:-} == --bin ]]; then trn_sim=$2; fi

echo '| profile | measured, us | predicted, us | error | duration of an instruction: median, 90th percentile | start, of the kernel: median |'
echo '|---|---|---|---|---|---|'
for profile in tests/data/profiles/*.json; do
  "$trn_sim" replay "$profile" --config trn2.3xlarge --report json --quiet |
    /usr/bin/python3 -c '
import json, sys
r = json.load(sys.stdin)["replay"]
duration, start = r["duration_error_percent"], r["start_error_percent_of_kernel"]
cells = [
    sys.argv[1],
    "%.2f" % (r["measured_total_ns"] / 1e3),
    "%.2f" % (r["predicted_total_ns"] / 1e3),
    "%+.2f %%" % r["total_error_percent"],
    "%.2f %%, %.2f %%" % (duration["median"], duration["p90"]),
    "%.2f %%" % start["median"],
]
print("| " + " | ".join(cells) + " |")
' "$(basename "$profile" .json)"
done
