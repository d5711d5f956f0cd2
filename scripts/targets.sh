#!/usr/bin/env bash
# Builds and tests the libraries for i686 (32-bit, on this processor) and s390x (big-endian, in
# qemu), or for Windows. Then runs the tools there: simulated files must be those of corpus.lock,
# byte for byte, and are verified. Standard libraries come from rustup or from Debian
# (libstd-rust-dev); linkers, qemu and Wine from Debian or Ubuntu.
#
#   scripts/targets.sh [--install] [--build-only] [--target TRIPLE] [PACKAGE...]
#
# Default packages: the tools, and crates whose tests need nothing else. Default targets: i686 and
# s390x; x86_64-pc-windows-gnu runs in Wine 9 or later. --install: rustup and apt-get (as root)
# install what is missing. TARGETS_FLAGS: more arguments for cargo; with -Zbuild-std and
# RUSTC_BOOTSTRAP=1 the standard library is built from source. TARGETS_WINE: the program that starts
# Windows programs, if it is not wine.
# Exit codes: 0 all passed; 1 a build or test failed; 3 no compiler or standard library.
set -euo pipefail
cd "$(dirname "$0")/.."

cannot() {
  echo "targets: NOT RUN: $1" >&2
  exit 3
}

targets=(i686-unknown-linux-gnu s390x-unknown-linux-gnu)
verb=(test --no-fail-fast)
run=yes
fetch=no
while [ $# -gt 0 ]; do
  case $1 in
    --install) fetch=yes ;;
    --build-only) verb=(test --no-run) run=no ;;
    --target)
      targets=("${2:?which target?}")
      shift
      ;;
    *) break ;;
  esac
  shift
done
packages=("$@")
tools=no
[ ${#packages[@]} -gt 0 ] || { packages=(etl-format etl-providers etl-nettrace etl-schema etl-control etl-events etl-tools etl-synth etl-analysis etl-verify) && tools=yes; }
# Together they have the CLR, the kernel, stacks, losses, several sessions and processes, and 32-bit
# machines and processes.
scenarios=(recipe kernel-session clr-stacks lost-events two-sessions windows-32 wow64)

install() {
  [ $fetch = yes ] || cannot "$* is missing: install it, or let --install do it"
  apt-get install -y -qq "$@" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq "$@" >/dev/null; } ||
    cannot "$* could not be installed"
}

read -ra flags <<<"${TARGETS_FLAGS:-}"

# Other programs for other machines: what is tested is what cargo test builds.
export CARGO_TARGET_DIR="${TARGETS_TARGET_DIR:-$PWD/.cache/targets}" CARGO_INCREMENTAL=0
# What runs long is worth some optimisation.
export CARGO_PROFILE_DEV_OPT_LEVEL=1
# Emulated tests take fewer cases of each property: what differs here differs in the first ones.
export PROPTEST_CASES="${PROPTEST_CASES:-16}" PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
# Other projects' readers are programs for this machine: Wine cannot start them.
export ETLKIT_PYTHON=none ETLKIT_NODE_MODULES=none
unset ETLKIT_REQUIRE_FOREIGN ETLKIT_REQUIRE_NODE

failed=0
for target in "${targets[@]}"; do
  if [[ " ${flags[*]-} " != *" -Zbuild-std"* ]] && ! compgen -G "$(rustc --print target-libdir --target "$target")/libstd-*.rlib" >/dev/null; then
    [ $fetch = yes ] || cannot "no standard library for $target: 'rustup target add $target', or let --install do it"
    rustup target add "$target" >&2 || cannot "rustup has no standard library for $target"
  fi
  case $target in
    i686-unknown-linux-gnu)
      # A compiler that is here may still lack the 32-bit half; where another one is for that,
      # libc6:i386 is what programs start with.
      if ! echo 'int main(void) { return 0; }' | gcc -m32 -x c -o /dev/null - 2>/dev/null; then
        if command -v i686-linux-gnu-gcc >/dev/null; then
          export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
        else
          install gcc-multilib
        fi
      fi
      ;;
    s390x-unknown-linux-gnu)
      command -v s390x-linux-gnu-gcc >/dev/null || install gcc-s390x-linux-gnu libc6-dev-s390x-cross
      qemu=$(command -v qemu-s390x || command -v qemu-s390x-static) || { install qemu-user && qemu=qemu-s390x; }
      export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
      export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="$qemu -L /usr/s390x-linux-gnu"
      ;;
    x86_64-pc-windows-gnu)
      command -v x86_64-w64-mingw32-gcc >/dev/null || install gcc-mingw-w64-x86-64
      wine="${TARGETS_WINE:-$(command -v wine)}" || { install wine wine64 && wine=wine; }
      export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
      export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$wine" WINEDEBUG="${WINEDEBUG:--all}"
      # In Wine there is no cargo that a test could ask.
      export INSTA_WORKSPACE_ROOT="$PWD"
      ;;
    *) cannot "nothing is known of $target here" ;;
  esac
  tested=("${packages[@]}")
  # Paths, names and what files may be done with are Windows' own.
  [ $tools = no ] || [ "$target" != x86_64-pc-windows-gnu ] || tested+=(etlkit)
  echo "targets: ${verb[*]} for $target: ${tested[*]}"
  # Real traces are cut at thousands of offsets, which would take an hour in an emulator.
  cargo "${verb[@]}" ${flags[@]+"${flags[@]}"} --quiet --locked --all-features --target "$target" "${tested[@]/#/--package=}" -- --skip truncation:: || failed=1
  [ $tools = yes ] || continue
  echo "targets: the tools for $target"
  # As tests are built: with overflow checks.
  tool() { cargo "$1" ${flags[@]+"${flags[@]}"} --quiet --locked --profile test --target "$target" --package etlkit "${@:2}"; }
  tool build --bins || { failed=1 && continue; }
  [ $run = yes ] || continue
  tool run --bin etlkit -- corpus check "${scenarios[@]}" || failed=1
  out=$(mktemp -d)
  tool run --bin etlkit -- synth corpus/recipe.kdl -o "$out" >&2 || failed=1
  tool run --bin etlverify -- "$out/recipe.etl" || failed=1
  rm -rf "$out"
done
exit $failed
