#!/usr/bin/env bash
# Compares the public items of the libraries with those of another revision: removed and changed
# items, which break users, and new ones.
#
#   scripts/semver.sh REV [PACKAGE...]
#
# REV is a commit or tag, usually the last release. Needs git, python3 and the toolchain: rustdoc
# writes the items as JSON (an unstable format, which RUSTC_BOOTSTRAP enables), and scripts/api.py
# compares names, signatures, fields, variants and impls. cargo-semver-checks has finer rules, but
# is a build of some 400 crates. Exit codes: 0 nothing breaks; 1 something does; 2 no revision, or
# an unknown one.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | grep '^#' | sed 's/^# \?//' >&2; exit 2; }
rev=$1
shift
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-providers etl-schema etl-control etl-events etl-tools etl-synth etl-analysis etl-verify etl-export)

old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git rev-parse --quiet --verify "$rev^{commit}" >/dev/null || { echo "semver: no revision is called $rev" >&2; exit 2; }
git archive "$rev" | tar -x -C "$old"
CARGO_TARGET_DIR=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
export CARGO_TARGET_DIR

# The items of a package, as JSON, into a file.
items() {
  RUSTC_BOOTSTRAP=1 cargo rustdoc --quiet --locked --lib --package "$1" --all-features -- -Z unstable-options --output-format json
  mv "$CARGO_TARGET_DIR/doc/${1//-/_}.json" "$2"
}

breaks=0
for package in "${packages[@]}"; do
  echo "$package since $rev"
  (cd "$old" && items "$package" "$old/old.json")
  items "$package" "$old/new.json"
  python3 scripts/api.py "$old/old.json" "$old/new.json" || breaks=1
done
exit $breaks
