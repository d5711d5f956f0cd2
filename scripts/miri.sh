#!/usr/bin/env bash
# Runs the tests of the libraries in Miri, an interpreter that finds undefined behaviour (in
# dependencies: the libraries have no unsafe code), then etl-format's unit tests for a big-endian
# machine. Miri is part of nightly toolchains. Installs cargo-nextest, which runs each test in its
# own process with a time limit, if it is missing.
#
#   scripts/miri.sh [--install] [--here] [--seconds N] [PACKAGE...]
#
# --install: rustup adds a nightly toolchain and Miri if they are missing. --here: no big-endian
# machine. --seconds N: stops tests after N seconds (120) and lists them; that is no failure.
# Default: the library crates, which takes hours. Interpreted code is some ten thousand times
# slower: property tests have few cases (PROPTEST_CASES), some tests use less data (`cfg!(miri)`),
# and tests that take many minutes are ignored (`cfg_attr(miri, ignore)`). MIRI_TARGET_DIR is the
# target directory, MIRI_JOBS the number of tests at the same time. Exit codes: 0 none failed; 1 a
# test failed; 2 wrong arguments; 3 no Miri.
set -euo pipefail
cd "$(dirname "$0")/.."

# A big-endian target with 64-bit pointers. Nothing is linked: it needs only the source of the
# standard library.
foreign=s390x-unknown-linux-gnu
nextest_version=0.9.151
tools="$PWD/.cache/tools"

cannot() {
  echo "miri: NOT RUN: $1" >&2
  exit 3
}

targets=(here "$foreign")
seconds=120
install=no
while [ $# -gt 0 ]; do
  case "$1" in
    --install) install=yes ;;
    --here) targets=(here) ;;
    --seconds)
      seconds="${2:-}"
      [[ "$seconds" =~ ^[1-9][0-9]*$ ]] || { echo "miri: --seconds takes a number from 1" >&2; exit 2; }
      shift ;;
    -*) echo "miri: there is no option $1: scripts/miri.sh [--install] [--here] [--seconds N] [PACKAGE...]" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-providers etl-nettrace etl-schema etl-control etl-events etl-tools etl-synth etl-analysis etl-verify etl-export)

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  [ $install = yes ] ||
    cannot "there is no nightly toolchain with Miri; with --install, rustup fetches it ('rustup component add miri rust-src --toolchain nightly')"
  command -v rustup >/dev/null || cannot "there is neither a nightly toolchain with Miri nor rustup, which installs one"
  # A nightly that is here stays the one it is: components are added to it.
  if ! cargo +nightly --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal >&2 || cannot "no nightly toolchain could be installed"
  fi
  rustup component add miri rust-src --toolchain nightly >&2 || cannot "rustup could not install miri and rust-src"
fi
cargo +nightly miri --version
if ! "$tools/bin/cargo-nextest" nextest --version 2>/dev/null | grep -q "$nextest_version"; then
  cargo install --quiet --locked --profile dev --root "$tools" --target-dir .cache/build \
    cargo-nextest --version "$nextest_version" || cannot "cargo-nextest could not be built"
fi
export PATH="$tools/bin:$PATH"

export PROPTEST_CASES="${PROPTEST_CASES:-1}" PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
# The clock and the environment are read, as proptest does.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
export CARGO_TARGET_DIR="${MIRI_TARGET_DIR:-$PWD/.cache/miri}" CARGO_INCREMENTAL=0
# What takes the real traces or a reader by others is left to tests that run at full speed.
unset ETLKIT_REQUIRE_SHARED ETLKIT_REQUIRE_FOREIGN ETLKIT_REQUIRE_CHROMIUM
export ETLKIT_SHARED=none ETLKIT_PYTHON=none ETLKIT_NODE_MODULES=none

mkdir -p "$CARGO_TARGET_DIR"
settings="$CARGO_TARGET_DIR/nextest.toml"
cat >"$settings" <<END
[profile.default-miri]
slow-timeout = { period = "${seconds}s", terminate-after = 1, on-timeout = "pass" }
fail-fast = false
status-level = "pass"
final-status-level = "slow"
END

failed=0
# Tests of one package somewhere: where they run, which of them.
interpret() {
  local target=$1 package=$2
  shift 2
  echo "miri: $package, $target"
  local where=()
  [ "$target" = here ] || where=(--target "$target")
  cargo +nightly miri nextest run --locked --config-file "$settings" ${MIRI_JOBS:+-j "$MIRI_JOBS"} ${where[@]+"${where[@]}"} \
    --package "$package" "$@" || failed=1
}
for target in "${targets[@]}"; do
  where=()
  [ "$target" = here ] || where=(--target "$target")
  cargo +nightly miri setup ${where[@]+"${where[@]}"} >/dev/null 2>&1 || cannot "the standard library cannot be built for Miri ($target)"
  if [ "$target" = here ]; then
    for package in "${packages[@]}"; do
      interpret here "$package" --lib --tests
    done
  else
    interpret "$target" etl-format --lib
  fi
done
exit $failed
