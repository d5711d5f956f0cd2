#!/usr/bin/env bash
# Runs the property tests again and again, each time with a new seed. `cargo test` draws the same
# cases in each run, so that it does not fail by chance; this finds what those cases miss.
#
#   scripts/properties.sh [SECONDS [FIRST_SEED [NAME...]]]
#
# Default: 600 seconds, a seed from the time, all tests. Prints the smallest failing input of a
# test: add it as a test. PROPTEST_RNG_SEED=SEED cargo test NAME repeats a failure. Exit codes: 0 no
# failure; 1 a test failed; 2 the tests do not build.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-600}"
seed="${2:-$(date +%s)}"
shift $(($# < 2 ? $# : 2))
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
# What runs long is worth some optimisation.
export CARGO_PROFILE_DEV_OPT_LEVEL=1

# Where the property tests are: a package, one of its test programs, and their names.
declare -A names
while read -r file; do
  # Tests that take something.
  found=$(grep -zoP '#\[test\]\s+fn \w+\(\s*[^)\s]' "$file" | tr '\0' '\n' | grep -oP '(?<=fn )\w+' || true)
  [ -n "$found" ] || continue
  crate=${file%%/*}
  program=${file#"$crate"/}
  case "$program" in
    src/*) program=lib ;;
    *) program=${program#tests/} program=${program%%/*} program=${program%.rs} ;;
  esac
  names["$crate $program"]+=" $(tr '\n' ' ' <<<"$found")"
done < <(git grep -l 'proptest!' -- '*.rs')

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
declare -A programs
cargo test --quiet --locked --workspace --all-features --no-run --message-format json >"$log/built" 2>"$log/build" ||
  { cat "$log/build" >&2; exit 2; }
while read -r source path; do
  source=${source#"$PWD"/}
  program=${source#*/tests/}
  case "$source" in */src/lib.rs) program=lib ;; esac
  program=${program%%/*}
  programs["${source%%/*} ${program%.rs}"]=$path
done < <(grep -oP '"src_path":"\K[^"]+|"executable":"\K[^"]+' "$log/built" | awk '/\.rs$/ { source = $0; next } { print source, $0 }')

failed=0
rounds=0
SECONDS=0
while [ "$SECONDS" -lt "$seconds" ] && [ "$failed" = 0 ]; do
  for key in "${!names[@]}"; do
    read -r crate program <<<"$key"
    chosen=(${names[$key]})
    if [ $# -gt 0 ]; then
      chosen=()
      for name in "$@"; do [[ " ${names[$key]} " = *" $name "* ]] && chosen+=("$name"); done
      [ ${#chosen[@]} -gt 0 ] || continue
    fi
    [ -n "${programs[$key]:-}" ] || { echo "properties: no test program for $key" >&2; exit 2; }
    # As cargo runs them: in the directory of their package.
    if ! (cd "$crate" && PROPTEST_RNG_SEED=$seed "${programs[$key]}" --quiet "${chosen[@]}") >"$log/said" 2>&1; then
      printf 'properties: seed %s, %s:\n' "$seed" "$key" >&2
      cat "$log/said" >&2
      failed=1
    fi
  done
  rounds=$((rounds + 1))
  seed=$((seed + 1))
done
count=$(printf '%s ' "${names[@]}" | wc -w)
echo "properties: $rounds rounds of ${count} tests in ${SECONDS} s, the last from seed $((seed - 1))"
exit $failed
