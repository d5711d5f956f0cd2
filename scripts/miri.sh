#!/usr/bin/env bash
# Runs the libraries' tests under Miri, which interprets them and finds undefined behaviour, and on a simulated big-endian 32-bit
# machine what depends on either. Slow: properties are tried on few cases, and tests that read real traces or start other programs skip.
#
#   scripts/miri.sh [PACKAGE...]
#
# Exit codes: 0 all passed; 1 a test failed; 3 there is no Miri here (rustup toolchain install nightly --component miri).
set -euo pipefail
cd "$(dirname "$0")/.."
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-schema)
if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "miri: NOT RUN: there is no nightly toolchain with the miri component" >&2
  exit 3
fi
export PROPTEST_CASES="${PROPTEST_CASES:-2}" PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
for target in "" mips-unknown-linux-gnu; do
  cargo +nightly miri test --locked --no-fail-fast ${target:+--target $target} "${packages[@]/#/--package=}" --lib
done
