#!/usr/bin/env bash
# Runs unit tests of the libraries under Miri, which interprets them and finds undefined behaviour: in the crates that these depend on, for they
# have no unsafe code of their own. Then etl-format's once more as if on a big-endian machine. Where there is a rustup but no Miri, it
# is installed into the nightly toolchain.
#
#   scripts/miri.sh [--here] [PACKAGE...]
#
# --here leaves the big-endian machine out. Without packages: those whose unit tests have been seen to come to their end; they take
# twenty minutes of one processor. Interpretation is a thousand times slower than a processor: properties are tried on few cases, some
# tests on less data (`cfg!(miri)`), and what would take minutes says so (`cfg_attr(miri, ignore)`).
# Exit codes: 0 all passed; 1 a test failed; 3 there is no Miri here, and none could be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

# Of a big-endian machine with 64-bit pointers. Nothing is linked: the standard library's source is all that is needed.
foreign=s390x-unknown-linux-gnu

cannot() {
  echo "miri: NOT RUN: $1" >&2
  exit 3
}

targets=(here "$foreign")
if [ "${1:-}" = --here ]; then
  targets=(here)
  shift
fi
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-schema etl-tools)

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  command -v rustup >/dev/null || cannot "there is neither a nightly toolchain with Miri nor rustup, which installs one"
  # A nightly that is here stays the one it is: components are added to it.
  if ! cargo +nightly --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal >&2 || cannot "no nightly toolchain could be installed"
  fi
  rustup component add miri rust-src --toolchain nightly >&2 || cannot "rustup could not install miri and rust-src"
fi
cargo +nightly miri --version

export PROPTEST_CASES="${PROPTEST_CASES:-2}" PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
# The clock and the environment are read, as proptest does.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
export CARGO_TARGET_DIR="${MIRI_TARGET_DIR:-$PWD/.cache/miri}" CARGO_INCREMENTAL=0

failed=0
for target in "${targets[@]}"; do
  if [ "$target" = here ]; then
    chosen=("${packages[@]}")
    where=()
  else
    chosen=(etl-format)
    where=(--target "$target")
  fi
  cargo +nightly miri setup ${where[@]+"${where[@]}"} >/dev/null 2>&1 || cannot "the standard library cannot be built for Miri (${target})"
  for package in "${chosen[@]}"; do
    echo "miri: $package, $target"
    cargo +nightly miri test --quiet --locked --no-fail-fast ${where[@]+"${where[@]}"} --package "$package" --lib || failed=1
  done
done
exit $failed
