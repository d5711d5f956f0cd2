#!/bin/sh
# Installs etlkit and etlverify of a release into a directory:
#
#   install.sh VERSION DIRECTORY
#
# The archive for this system is downloaded with its SHA-256 sum, which has to fit. The variable
# ETLKIT_DOWNLOAD names another place of the release's files; a place that begins with file:// is a
# directory. Exit codes: 0 installed; 1 the download fails or has another sum; 2 wrong arguments, or
# no programs for this system.
set -eu

[ $# -eq 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=$1
directory=$2
place=${ETLKIT_DOWNLOAD:-https://git.example/etlkit/releases/download/v$version}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) target=x86_64-unknown-linux-musl ;;
  Linux-aarch64) target=aarch64-unknown-linux-musl ;;
  Darwin-x86_64) target=x86_64-apple-darwin ;;
  Darwin-arm64) target=aarch64-apple-darwin ;;
  MINGW*-x86_64 | MSYS*-x86_64) target=x86_64-pc-windows-msvc ;;
  *)
    echo "install.sh: there are no programs for $(uname -s) on $(uname -m): build them with" \
      "\`cargo install etlkit\`" >&2
    exit 2
    ;;
esac

# fetch NAME: downloads a file of the release into the current directory.
fetch() {
  case "$place" in
    file://*) cp "${place#file://}/$1" "$1" ;;
    *) curl --fail --silent --show-error --location --retry 3 --output "$1" "$place/$1" ;;
  esac || {
    echo "install.sh: $place/$1 cannot be downloaded" >&2
    exit 1
  }
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

name=etlkit-$version-$target
mkdir -p "$directory"
cd "$directory"
fetch "$name.tar.gz"
fetch SHA256SUMS
expected=$(sed -n "s/^\([0-9a-f]*\) [ *]$name\.tar\.gz\$/\1/p" SHA256SUMS)
found=$(sha256 "$name.tar.gz")
if [ "$found" != "$expected" ]; then
  rm -f "$name.tar.gz" SHA256SUMS
  echo "install.sh: $name.tar.gz has the SHA-256 sum $found, and the release states" \
    "${expected:-none}: nothing was installed" >&2
  exit 1
fi
tar -xzf "$name.tar.gz"
mv -f "$name"/etlkit* "$name"/etlverify* .
rm -rf "$name" "$name.tar.gz" SHA256SUMS
./etlkit --version
