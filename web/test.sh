#!/usr/bin/env bash
# Builds the page and the npm package, and compares them with the command line:
#
#   web/test.sh [--quick] [--pictures DIR]
#
# The package runs in Node.js, the page in Chromium (scripts/install.sh node chromium). The module is
# built first (web/module/build.sh).
#   --quick     a build of the module that takes less time, and is larger
#   --pictures  writes a picture of each view to DIR: light, dark and narrow
# Exit codes: 0 passed; 1 failed; 3 a program is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

build=()
test=()
profile=release
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      build=(--quick)
      profile=quick
      ;;
    --pictures)
      test=(--pictures "$2")
      shift
      ;;
    *) echo "page: unknown argument $1" >&2 && exit 1 ;;
  esac
  shift
done

for program in node npm; do
  command -v $program >/dev/null || { echo "page: NOT RUN: there is no $program" >&2 && exit 3; }
done
web/module/build.sh ${build[@]+"${build[@]}"}
directory=${WASM_TARGET_DIR:-$PWD/.cache/wasm}
# The size is only limited for the small build.
[ $profile = release ] || export ETLKIT_WASM=$directory/wasm32-unknown-unknown/$profile/etl_wasm.wasm
[ -d web/node_modules ] || npm --prefix web ci --silent
npm --prefix web run --silent build
cargo build --quiet --locked --package etlkit --bin etlkit
etlkit=${CARGO_TARGET_DIR:-$PWD/target}/debug/etlkit
node web/test/package.mjs "$etlkit"
node web/test/page.mjs "$etlkit" ${test[@]+"${test[@]}"}
