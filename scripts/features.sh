#!/usr/bin/env bash
# Builds every published crate without features, with each feature, and with all. Builds one crate
# at a time, so that features which other crates enable do not hide an error.
#
#   scripts/features.sh [--list | --test]
#
# --list prints the combinations. --test also runs the tests of crates with features in each
# combination. Needs python3. `.ci/run` calls it without --test: its tests run with all features.
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
