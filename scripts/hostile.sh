#!/usr/bin/env bash
# Runs every command of etlkit on the whole hostile corpus: scripts/hostile.sh [FIRST [LAST]]
#
# The test hostile::commands_accept_a_part_of_the_hostile_corpus divides the pairs of traces and
# commands into 50 parts, and runs one of them. This runs the parts FIRST to LAST (0 to 49). Exit
# code 1 and the numbers of the parts if any fails.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=()
for part in $(seq "${1:-0}" "${2:-49}"); do
  ETLKIT_HOSTILE_PART="$part" cargo test --quiet -p etl-tests --test it \
    hostile::commands_accept_a_part_of_the_hostile_corpus || failed+=("$part")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed parts: ${failed[*]}"
  exit 1
fi
