#!/usr/bin/env bash
# Builds the libraries for WebAssembly (wasm32-unknown-unknown), unchanged, as the module of the page
# and of the npm package (web/module). Prints the size of the module.
#
#   web/module/build.sh [--quick] [--test]
#
# --quick: a build that takes less time, for work on the page; the module is larger and slower.
#
# --test: runs the module in Node.js over the real traces and the corpus, and compares its reports
# with the native etlverify, byte for byte.
#
# The standard library for WebAssembly comes from rustup (rustup target add wasm32-unknown-unknown).
# Otherwise it is built from the source of Debian's compiler (rustc-web, rust-web-src), which this
# script installs with apt-get as root; the linker comes from rustup's toolchain. The first build
# takes some minutes.
# Exit codes: 0 passed; 1 a build failed, or reports differ; 3 no compiler, linker or Node.js.
set -euo pipefail
cd "$(dirname "$0")/../.."

cannot() {
  echo "wasm: NOT RUN: $1" >&2
  exit 3
}

test=no
profile=release
for argument in "$@"; do
  case $argument in
    --quick) profile=quick ;;
    --test) test=yes ;;
    *) echo "wasm: unknown argument $argument" >&2 && exit 1 ;;
  esac
done
[ $test = no ] || command -v node >/dev/null || cannot "there is no Node.js"

target=wasm32-unknown-unknown
debian=/usr/bin/rustc
environment=()
flags=()

# Whether Debian's compiler is as new as the workspace needs, and the source belongs to it.
is_ready() {
  local oldest version
  [ -x $debian ] && [ -d "$($debian --print sysroot)/lib/rustlib/src/rust/library" ] || return 1
  oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  version=$($debian --version | cut -d ' ' -f 2)
  printf '%s\n%s\n' "$oldest" "$version" | sort --check=quiet --version-sort
}

install() {
  local advice="no standard library: 'rustup target add $target'"
  command -v apt-get >/dev/null || cannot "$advice"
  [ "$(id -u)" = 0 ] || cannot "$advice, or run this script as root"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -qq -y --no-install-recommends rustc-web rust-web-src; } \
    >/dev/null 2>&1 || cannot "apt-get could not install rustc-web and rust-web-src"
}

if ! compgen -G "$(rustc --print target-libdir --target $target)/libstd-*.rlib" >/dev/null; then
  is_ready || install
  is_ready || cannot "$debian is too old, or has no source of its standard library"
  host=$(rustc -vV | sed -n 's/^host: //p')
  linker=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld
  [ -x "$linker" ] || cannot "there is no linker: $linker"
  # Another compiler cannot compile this source. RUSTC_BOOTSTRAP: building it is unstable.
  environment=(
    RUSTC=$debian
    RUSTC_BOOTSTRAP=1
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker"
  )
  flags=(-Zbuild-std=std,panic_abort)
fi

directory=${WASM_TARGET_DIR:-$PWD/.cache/wasm}
cargo fmt --check --manifest-path web/module/Cargo.toml || exit 1
env ${environment[@]+"${environment[@]}"} cargo build ${flags[@]+"${flags[@]}"} --profile "$profile" --locked \
  --manifest-path web/module/Cargo.toml --target $target --target-dir "$directory" || exit 1
module=$directory/$target/$profile/etl_wasm.wasm
echo "wasm: $(wc -c <"$module") bytes, $(gzip -9 <"$module" | wc -c) with gzip"
[ $test = yes ] || exit 0

cargo build --quiet --locked --bins --package etlkit || exit 1
native=${CARGO_TARGET_DIR:-$PWD/target}/debug
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$native/etlkit" corpus build -o "$corpus" >/dev/null
traces=("$corpus")
shared=${ETLKIT_SHARED:-../shared}/traces
if [ -d "$shared" ]; then
  traces+=("$shared")
else
  echo "wasm: no real traces in $shared" >&2
fi
node web/module/run.mjs "$module" "$native/etlverify" "${traces[@]}"
