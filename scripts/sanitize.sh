#!/usr/bin/env bash
# Runs tests under AddressSanitizer (out-of-bounds access, use after free, leaks) and the tools
# under valgrind's memcheck (use of uninitialised bytes). Both check dependencies too, which have
# unsafe code; the workspace has one use, the memory map. scripts/miri.sh also finds undefined
# behaviour that touches no wrong byte.
#
#   scripts/sanitize.sh [PACKAGE...]
#
# Needs no nightly toolchain. Prints which tools are missing and skips them.
# Exit codes: 0 all passed; 1 a fault was found.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-providers etl-nettrace etl-schema etl-control etl-events etl-tools etl-analysis etl-export etlkit)
triple=$(rustc -vV | sed -n 's/^host: //p')
build="${SANITIZE_TARGET_DIR:-$PWD/.cache/sanitize}"
export PROPTEST_CASES="${PROPTEST_CASES:-32}" PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
# What runs long is worth some optimisation.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_INCREMENTAL=0
failed=0

if [ -e "$(rustc --print sysroot)/lib/rustlib/$triple/lib/librustc-stable_rt.asan.a" ] ||
  [ -e "$(rustc --print sysroot)/lib/rustlib/$triple/lib/librustc-nightly_rt.asan.a" ]; then
  # A target is named so that what runs while building (build scripts, macros) is left alone.
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address" CARGO_TARGET_DIR="$build" \
    cargo test --quiet --locked --no-fail-fast --target "$triple" "${packages[@]/#/--package=}" --lib --bins --tests || failed=1
else
  echo "sanitize: NOT RUN: this toolchain has no AddressSanitizer for $triple" >&2
fi

if command -v valgrind >/dev/null; then
  CARGO_TARGET_DIR="$build" cargo build --quiet --locked -p etlkit
  here=$(mktemp -d)
  trap 'rm -rf "$here"' EXIT
  tool="$build/debug/etlkit"
  "$tool" synth corpus/recipe.kdl -o "$here/made" --force >/dev/null
  trace=$(ls "$here"/made/*.etl | head -n 1)
  head -c 200000 "$trace" | head -c -300 >"$here/cut.etl"
  gzip -k "$here/cut.etl"
  checked() {
    local code=0
    valgrind --quiet --error-exitcode=99 --leak-check=no "$tool" "$@" >/dev/null 2>"$here/said" || code=$?
    if [ "$code" -gt 2 ]; then
      echo "sanitize: etlkit $* ends with $code under memcheck:" >&2
      cat "$here/said" >&2
      failed=1
    fi
  }
  for file in "$trace" "$here/cut.etl" "$here/cut.etl.gz"; do
    checked info "$file"
    checked dump --threads 2 --format jsonl --limit 2000 "$file"
    checked dump --no-mmap --format xml --limit 500 "$file"
    checked compress -o "$here/packed.etl" --force "$file"
    checked verify --no-config --threads 2 "$here/packed.etl"
    checked decompress --threads 2 -o "$here/plain.etl" --force "$here/packed.etl"
    checked repair -o "$here/repaired.etl" --force "$file"
  done
  echo "sanitize: memcheck: 21 runs of etlkit"
else
  echo "sanitize: NOT RUN: valgrind is not installed" >&2
fi
exit $failed
