#!/usr/bin/env bash
# Checks the promised Rust version (rust-version in Cargo.toml): all crates promise the same, no
# dependency in the lock file needs a newer one, and the workspace builds with it.
#
# If the installed toolchain has that version, every other build shows the last point, and nothing
# is built here. If it is newer, the promised version builds the workspace (rustup installs it).
#
# Exit codes: 0 the promise holds; 1 it does not; 3 the promised version is not available.
set -euo pipefail
cd "$(dirname "$0")/.."

promised=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
cargo metadata --format-version 1 --locked --all-features | python3 -c '
import json, sys

promised = sys.argv[1]


def key(version):
    return tuple(int(part) for part in (version.split(".") + ["0", "0"])[:3])


wrong = False
for package in json.load(sys.stdin)["packages"]:
    demanded = package["rust_version"]
    name = "{name} {version}".format(**package)
    if package["source"] is None and demanded != promised:
        print(f"msrv: {name} promises {demanded}, not {promised}")
        wrong = True
    elif demanded and key(demanded) > key(promised):
        print(f"msrv: {name} demands {demanded}")
        wrong = True
sys.exit(wrong)
' "$promised"

here=$(rustc --version | sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/')
if [ "$here" = "$promised" ]; then
  echo "msrv: $promised, which is the toolchain here"
  exit 0
fi
if ! cargo "+$promised" --version >/dev/null 2>&1; then
  echo "msrv: NOT RUN: the toolchain here is $here, and $promised is not installed" >&2
  exit 3
fi
cargo "+$promised" check --workspace --all-features --locked
echo "msrv: builds with $promised"
