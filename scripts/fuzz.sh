#!/usr/bin/env bash
# Runs the fuzz targets: scripts/fuzz.sh [TARGET | all] [SECONDS EACH]
#
# Needs no nightly toolchain: the code has no unsafe parts that a sanitizer could check, and a
# stable compiler has the instrumentation that libFuzzer needs. The simulator makes the seeds.
# Inputs that reach new code are kept in .cache/fuzz, and the next run starts with them. Prints a
# table. FUZZ_RUNS=N stops after N inputs, seeds included. FUZZ_SEED=N starts from the same random
# numbers each time. Both neither use nor keep inputs of other runs, so that the same code gets the
# same inputs. FUZZ_WRITE=FILE writes the table into that page. Exit codes: 0 all inputs passed; 1
# one failed, and is in .cache/fuzz/found.
set -euo pipefail
cd "$(dirname "$0")/.."

target="${1:-all}"
seconds="${2:-60}"
cargo_fuzz_version=0.13.2
tools="$PWD/.cache/tools"
work="$PWD/.cache/fuzz"
triple=$(rustc -vV | sed -n 's/^host: //p')

if ! "$tools/bin/cargo-fuzz" fuzz --version 2>/dev/null | grep -q "$cargo_fuzz_version"; then
  cargo install --quiet --locked --profile dev --root "$tools" --target-dir .cache/build \
    cargo-fuzz --version "$cargo_fuzz_version"
fi
export PATH="$tools/bin:$PATH"

corpus="$work/corpus"
if [ -n "${FUZZ_RUNS:-}${FUZZ_SEED:-}" ]; then
  corpus=$(mktemp -d)
  trap 'rm -rf "$corpus"' EXIT
fi
# Seeds of earlier code are not mixed in.
rm -rf "$work/seeds"
mkdir -p "$work/seeds" "$corpus" "$work/found" "$work/logs"
# The target of the tables is not in etl-tests. Its seeds are the traces of the target commands,
# whose last byte selects a command.
seeded="$target"
[ "$target" != tables ] || seeded=commands
cargo run --quiet --locked -p etl-tests --example seeds -- "$work/seeds" \
  $([ "$seeded" = all ] || echo "$seeded")
[ ! -d "$work/seeds/commands" ] || cp -r "$work/seeds/commands" "$work/seeds/tables"
targets=$(cargo run --quiet --locked -p etl-tests --example seeds | cut -f1,2)
targets+=$'\ntables\t16384'

export CARGO_TARGET_DIR="${FUZZ_TARGET_DIR:-$work/target}"
for bin in any tables; do
  RUSTC_BOOTSTRAP=1 cargo fuzz build --sanitizer none "$bin"
done
programs="$CARGO_TARGET_DIR/$triple/release"

failed=()
table="| target | executions | edges (cov) | features (ft) | inputs kept |
|---|---:|---:|---:|---:|"
while IFS=$'\t' read -r name longest; do
  [ "$target" = all ] || [ "$target" = "$name" ] || continue
  mkdir -p "$corpus/$name"
  log="$work/logs/$name.log"
  words=()
  [ ! -e "$work/seeds/$name.dict" ] || words=(-dict="$work/seeds/$name.dict")
  program="$programs/any"
  [ "$name" != tables ] || program="$programs/tables"
  FUZZ_TARGET="$name" "$program" "$corpus/$name" "$work/seeds/$name" "${words[@]}" \
    ${FUZZ_SEED:+-seed="$FUZZ_SEED"} ${FUZZ_RUNS:+-runs="$FUZZ_RUNS"} -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 -max_len="$longest" \
    -print_final_stats=1 -artifact_prefix="$work/found/$name-" </dev/null >"$log" 2>&1 || failed+=("$name")
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  last=$(grep -E 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1)
  number() { sed -E "s/.*$1: ([0-9]+).*/\1/" <<<"$last"; }
  table+="
| $name | ${executions:-?} | $(number cov) | $(number ft) | $(number corp) |"
done <<<"$targets"

printf '%s\n' "$table"
if [ -n "${FUZZ_WRITE:-}" ]; then
  TABLE="$table" awk '/^<!-- table: begin -->/ { print; print ENVIRON["TABLE"]; skip = 1 }
    /^<!-- table: end -->/ { skip = 0 } !skip && !/^<!-- table: begin -->/' "$FUZZ_WRITE" >"$work/page"
  cp "$work/page" "$FUZZ_WRITE"
fi
if [ ${#failed[@]} -gt 0 ]; then
  for name in "${failed[@]}"; do
    printf '\n%s: an input does not pass\n' "$name"
    tail -n 30 "$work/logs/$name.log"
  done
  exit 1
fi
