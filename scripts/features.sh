#!/usr/bin/env bash
# Builds every crate that would be published with each combination of its features that can matter: none, each alone, all. Only the crate and
# what it needs for itself: a feature that another crate of the workspace happens to switch on does not help it here.
#
#   scripts/features.sh [--list | --test]
#
# With --list the combinations are only named; with --test the tests of the crates that have features are run with each combination as well.
# Needs python3; what is built is what cargo builds anyway. Part of .ci/run, without --test: the tests there run with all features.
# Exit codes: 0 all build; 1 one does not.
set -euo pipefail
cd "$(dirname "$0")/.."

combinations() {
  cargo metadata --format-version 1 --no-deps --locked | python3 -c '
import json, sys

for package in sorted(json.load(sys.stdin)["packages"], key=lambda p: p["name"]):
    if package["publish"] == []:
        continue
    features = sorted(set(package["features"]) - {"default"})
    print(package["name"], "--no-default-features")
    for feature in features:
        print(package["name"], "--no-default-features", "--features", feature)
    if len(features) > 1 or "default" in package["features"]:
        print(package["name"], "--all-features")
'
}

combined=$(combinations)
while read -r package how; do
  echo "features: $package $how"
  [ "${1:-}" != --list ] || continue
  # shellcheck disable=SC2086 # The options are words.
  cargo check --quiet --locked --lib --package "$package" $how
  # A crate that is there once has no features, and its tests are run elsewhere.
  if [ "${1:-}" = --test ] && [ "$(grep -c "^$package " <<<"$combined")" -gt 1 ]; then
    # shellcheck disable=SC2086
    cargo test --quiet --locked --package "$package" $how
  fi
done <<<"$combined"
