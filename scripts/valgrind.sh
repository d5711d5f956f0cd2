#!/usr/bin/env bash
# Installs valgrind for the counts of instructions, if there is none: Debian's, with apt-get as
# root. Takes at most two minutes. Exit code 3: there is none, and it cannot be installed.
set -euo pipefail

cannot() {
  printf '\n*** NO VALGRIND: %s; instructions are not counted ***\n\n' "$1" >&2
  exit 3
}

ready() { valgrind --version 2>/dev/null; }

ready && exit 0
command -v apt-get >/dev/null || cannot "no apt-get here to install it with"
[ "$(id -u)" = 0 ] || cannot "only root may install it"

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! timeout 100 sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends valgrind' >"$log" 2>&1; then
  tail -5 "$log" >&2
  cannot "apt-get could not install it"
fi
ready || cannot "it was installed and does not start"
