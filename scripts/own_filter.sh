#!/usr/bin/env bash
# Follows "From an empty directory to a found bug" of docs/cookbook.md: the project with the filter
# as first written, whose test has to fail with the output on the page, and with the corrected
# filter, whose test has to pass.
#
#   scripts/own_filter.sh
#
# Uses the dependencies of Cargo.lock. Exit codes: 0 as the page says; 1 not.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

page=$(sed -n '/^## From an empty directory/,/^## Tests with pytest/p' docs/cookbook.md)

# Block N (from 1) of this part of the page after the line "`NAME`:".
block() {
  awk -v mark="\`$1\`:" -v nth="$2" '
    $0 == mark { seen++; next }
    seen == nth && /^```/ { if (inside) exit; inside = 1; next }
    inside { print }' <<<"$page"
}

mkdir "$work/src" "$work/tests"
sed -E 's#^etl-(control|schema) = \{ git = "[^"]*"#etl-\1 = { path = "'"$root"'/\1"#' \
  <<<"$(block Cargo.toml 1)" >"$work/Cargo.toml"
block tests/filter.rs 1 >"$work/tests/filter.rs"
cp Cargo.lock "$work/"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/own-filter"
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=true

block src/lib.rs 1 >"$work/src/lib.rs"
if (cd "$work" && PROPTEST_RNG_SEED=2026 cargo test --quiet --offline) >"$work/said" 2>&1; then
  echo "own_filter: the test does not find the bug" >&2
  exit 1
fi
expected=$(grep '^minimal failing input' <<<"$page")
if ! grep -qxF "$expected" "$work/said"; then
  cat "$work/said" >&2
  echo "own_filter: docs/cookbook.md prints another case: $expected" >&2
  exit 1
fi

block src/lib.rs 2 >"$work/src/lib.rs"
(cd "$work" && cargo test --quiet --offline)
echo "own_filter: as docs/cookbook.md says"
