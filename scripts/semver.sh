#!/usr/bin/env bash
# Tells how the public items of the libraries differ from those of another revision: what is gone or changed, which breaks others, and what is new.
#
#   scripts/semver.sh REV [PACKAGE...]
#
# REV is a commit or tag: the last release. Before there is one, any older commit shows what has changed since. Needs git, python3 and the toolchain:
# rustdoc writes each crate's items as JSON (an unstable format, so RUSTC_BOOTSTRAP lets a stable one do it), and scripts/api.py compares. It looks at
# names, signatures, fields, variants and impls, and knows none of the finer rules of cargo-semver-checks, which takes a build of some 400 crates.
# Exit codes: 0 nothing breaks; 1 something does, and it is named; 2 no revision was given, or it is not known.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | grep '^#' | sed 's/^# \?//' >&2; exit 2; }
rev=$1
shift
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-schema etl-control etl-tools etl-synth etl-analysis etl-verify)

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
