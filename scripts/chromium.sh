#!/usr/bin/env bash
# Sees to it that there is a Chromium for the tests that look at pages in one: the one that is there, or Debian's, which takes
# apt-get and root. Ends with 3, loudly, where none is to be had, and after two minutes at the latest.
#
# Seen on Debian 12 without Chromium, package lists and downloaded packages: Chromium 156 stands and takes pictures after 48 s; a
# second run takes 0.3 s. Without root, without apt-get, and without a network (after 100 s) it ends with 3 and says why.
set -euo pipefail

cannot() {
  printf '\n*** NO CHROMIUM: %s; tests of pages in a browser will show nothing ***\n\n' "$1" >&2
  exit 3
}

# Whether there is one, and it starts.
ready() { timeout 20 chromium --headless --no-sandbox --version 2>/dev/null | grep Chromium; }

ready && exit 0
command -v apt-get >/dev/null || cannot "no apt-get here to install it with"
[ "$(id -u)" = 0 ] || cannot "only root may install it"

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Text without any font would be boxes.
if ! timeout 100 sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core' >"$log" 2>&1; then
  tail -5 "$log" >&2
  cannot "apt-get could not install it"
fi
ready || cannot "it was installed and does not start"
