#!/usr/bin/env bash
# Compares the public items of the libraries with tests/api:
# scripts/public_api.sh [--write] [PACKAGE...]
#
# Prints what differs from the committed lists and ends with 1, or writes them again (--write).
# rustdoc writes the items as JSON, an unstable format that RUSTC_BOOTSTRAP lets a stable toolchain
# write; scripts/api.py prints them. Needs python3.
set -euo pipefail
cd "$(dirname "$0")/.."

write=no
if [ "${1:-}" = --write ]; then
  write=yes
  shift
fi
packages=("$@")
[ ${#packages[@]} -gt 0 ] ||
  packages=(etl-format etl-providers etl-schema etl-control etl-analysis etl-events etl-synth etl-verify etl-tools etl-export etl-tables)
target=$(cargo metadata --format-version 1 --no-deps --locked |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

mkdir -p tests/api
differ=0
for package in "${packages[@]}"; do
  RUSTC_BOOTSTRAP=1 cargo rustdoc --quiet --locked --lib --package "$package" --all-features -- \
    -Z unstable-options --output-format json
  list=$(python3 scripts/api.py list "$target/doc/${package//-/_}.json")
  if [ $write = yes ]; then
    printf '%s\n' "$list" >"tests/api/$package.txt"
  elif ! diff -u "tests/api/$package.txt" <(printf '%s\n' "$list"); then
    differ=1
  fi
done
[ $differ = 0 ] || echo "the public items changed: scripts/public_api.sh --write" >&2
exit $differ
