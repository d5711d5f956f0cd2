#!/usr/bin/env bash
# Runs tests with a standard library that was built with its own checks (cargo-careful): what unsafe code of the dependencies owes it is looked at when
# it is called, as are values that must be initialised. Less than scripts/miri.sh sees, but nearly at full speed: the whole
# test suite runs so, real traces and the tools that tests start included.
#
#   scripts/careful.sh [PACKAGE...]
#
# Without packages: all of the workspace. Needs the source of the standard library: rustup's rust-src, or RUST_LIB_SRC names the folder
# `library` of the source of this very toolchain. No nightly toolchain is needed. CAREFUL_TARGET_DIR is where it builds.
# Exit codes: 0 all passed; 1 a test failed; 3 there is no source of the standard library, or cargo-careful could not be built.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.4.10
tools="$PWD/.cache/tools"

cannot() {
  echo "careful: NOT RUN: $1" >&2
  exit 3
}

packages=(--workspace)
[ $# -eq 0 ] || packages=("${@/#/--package=}")
if [ -z "${RUST_LIB_SRC:-}" ] && ! [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
  cannot "no source of the standard library: 'rustup component add rust-src', or name it in RUST_LIB_SRC"
fi
if ! grep -qs "^\"cargo-careful $version " "$tools/.crates.toml"; then
  cargo install --quiet --locked --root "$tools" --target-dir .cache/build cargo-careful --version "$version" ||
    cannot "cargo-careful could not be built"
fi
export PATH="$tools/bin:$PATH" CARGO_TARGET_DIR="${CAREFUL_TARGET_DIR:-$PWD/.cache/careful}" CARGO_INCREMENTAL=0
# What runs long is worth some optimisation.
export CARGO_PROFILE_DEV_OPT_LEVEL=1
# It asks for what only nightly toolchains allow.
export RUSTC_BOOTSTRAP=1
cargo careful test --locked --no-fail-fast --all-features "${packages[@]}" || exit 1
