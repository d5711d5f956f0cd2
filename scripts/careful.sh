#!/usr/bin/env bash
# Runs the tests with a standard library that checks its preconditions (cargo-careful), which finds
# undefined behaviour in unsafe code of dependencies. It finds less than scripts/miri.sh, but runs
# nearly at full speed: the whole test suite, with real traces and the tools that tests start.
#
#   scripts/careful.sh [PACKAGE...]
#
# Default: the whole workspace. Needs the source of the standard library: rustup's rust-src, or the
# folder `library` of this toolchain's source in RUST_LIB_SRC. Needs no nightly toolchain.
# CAREFUL_TARGET_DIR is the target directory. Exit codes: 0 all passed; 1 a test failed; 3 no source
# of the standard library, or no cargo-careful.
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
