#!/bin/sh
# Makes the archive of a release for one target, and adds its SHA-256 sum to SHA256SUMS:
#
#   packaging/archive.sh PROGRAMS TARGET OUT
#
# PROGRAMS is the directory with etlkit and etlverify, for example target/release; TARGET the Rust
# target for which they were built; OUT the directory of the archive. The same programs give the
# same bytes: names are sorted, and times and owners left out.
set -eu

[ $# -eq 3 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
programs=$1
target=$2
out=$3

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)
name=etlkit-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name" "$out"
for program in etlkit etlverify; do
  [ -f "$programs/$program" ] || program=$program.exe
  cp "$programs/$program" "$work/$name/"
done
cp "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$root/CHANGELOG.md" "$root/cli/README.md" "$work/$name/"
chmod -R u=rwX,go=rX "$work/$name"

tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/tar" "$name"
gzip -9 -n <"$work/tar" >"$out/$name.tar.gz"
(
  cd "$out"
  [ ! -f SHA256SUMS ] || sed -i "/ $name\.tar\.gz\$/d" SHA256SUMS
  sha256sum "$name.tar.gz" >>SHA256SUMS
)
echo "$out/$name.tar.gz"
