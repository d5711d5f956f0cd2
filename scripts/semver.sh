#!/usr/bin/env bash
# Tells how the public items of the libraries differ from those of another revision, by the rules of semantic versioning.
#
#   scripts/semver.sh REV [PACKAGE...]
#
# REV is a commit or tag: the last release. Before there is one, any older commit shows what has changed since. Installs cargo-semver-checks into
# .cache/tools, which takes some minutes.
# Exit codes: 0 nothing breaks; 1 something does, and it is named; 2 no revision was given; 3 cargo-semver-checks could not be had.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.51.0
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | grep '^#' | sed 's/^# \?//' >&2; exit 2; }
rev=$1
shift
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-schema etl-tools etl-synth etl-verify)

tools="$PWD/.cache/tools"
export PATH="$tools/bin:$PATH"
if ! cargo semver-checks --version 2>/dev/null | grep -q "$version"; then
  cargo install --quiet --locked --profile dev --root "$tools" --target-dir .cache/build cargo-semver-checks --version "$version" || {
    echo "semver: NOT RUN: cargo-semver-checks $version could not be installed" >&2
    exit 3
  }
fi
cargo semver-checks --baseline-rev "$rev" --all-features "${packages[@]/#/--package=}" || exit 1
