#!/usr/bin/env bash
# Builds the libraries for a 32-bit machine (i686) and for a big-endian one (s390x) and runs their tests there: the first on this
# processor, the second in qemu. Compilers and standard libraries for both come from Debian, into a root directory of their own
# (.cache/targets/root, about 2 GB), so that nothing but debootstrap is installed here.
#
#   scripts/targets.sh [--build-only] [PACKAGE...]
#
# Without packages: those whose tests need nothing but themselves. Needs root, Debian's packages and crates.io.
# Exit codes: 0 all passed; 1 a build or a test failed; 3 the root directory could not be made here.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=forky
mirror=${ETLKIT_DEBIAN:-http://deb.debian.org/debian}
here=.cache/targets
root=$here/root
declare -A arch=([i686-unknown-linux-gnu]=i386 [s390x-unknown-linux-gnu]=s390x)
targets=(i686-unknown-linux-gnu s390x-unknown-linux-gnu)

cannot() {
  echo "targets: NOT RUN: $1" >&2
  exit 3
}

verb=(test --no-fail-fast)
if [ "${1:-}" = --build-only ]; then
  verb=(test --no-run)
  shift
fi
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(etl-format etl-schema etl-tools etl-synth etl-verify)

[ "$(id -u)" = 0 ] || cannot "a root directory can only be made and entered by root"
if ! command -v debootstrap >/dev/null; then
  apt-get install -y -qq debootstrap >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq debootstrap >/dev/null; } ||
    cannot "debootstrap is not here and could not be installed"
fi

if [ ! -e "$root/.whole" ]; then
  rm -rf "$root"
  mkdir -p "$here"
  include=rustc,cargo,gcc,libc6-dev,qemu-user,gcc-s390x-linux-gnu,libc6-dev-s390x-cross,gcc-i686-linux-gnu,libc6-dev-i386-cross
  # The script is named because an older debootstrap does not know the suite.
  debootstrap --variant=minbase --include=$include $suite "$root" "$mirror" /usr/share/debootstrap/scripts/sid >"$here/debootstrap.log" 2>&1 ||
    cannot "debootstrap failed: see $here/debootstrap.log"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
  for target in "${targets[@]}"; do
    # Packages of other architectures cannot be installed beside these; their libraries can be laid beside these. A mirror may lag
    # behind the date until which its index is valid; its signature is checked all the same.
    chroot "$root" bash -ec "
      dpkg --add-architecture ${arch[$target]}
      apt-get -o Acquire::Check-Valid-Until=false update -qq
      cd /tmp
      apt-get download -qq libstd-rust-dev:${arch[$target]}
      dpkg-deb -x libstd-rust-dev_*_${arch[$target]}.deb std-${arch[$target]}
      cp -a std-${arch[$target]}/usr/lib/rustlib/$target /usr/lib/rustlib/
      rm -rf std-${arch[$target]} libstd-rust-dev_*_${arch[$target]}.deb
    " >>"$here/debootstrap.log" 2>&1 || cannot "the standard library for $target could not be had: see $here/debootstrap.log"
  done
  touch "$root/.whole"
fi

# The checkout as it stands, and the sources of all that it depends on: inside there is no registry.
mkdir -p "$root/src"
find "$root/src" -mindepth 1 -maxdepth 1 ! -name vendor -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$root/src"
mkdir -p "$root/src/.cargo"
cargo vendor --locked --quiet "$root/src/vendor" >/dev/null
cat >"$root/src/.cargo/config.toml" <<'CONFIG'
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "vendor"
[target.i686-unknown-linux-gnu]
linker = "i686-linux-gnu-gcc"
runner = ["/usr/i686-linux-gnu/lib/ld-linux.so.2", "--library-path", "/usr/i686-linux-gnu/lib"]
[target.s390x-unknown-linux-gnu]
linker = "s390x-linux-gnu-gcc"
runner = ["qemu-s390x", "-L", "/usr/s390x-linux-gnu"]
CONFIG

failed=0
for target in "${targets[@]}"; do
  echo "targets: ${verb[*]} for $target: ${packages[*]}"
  # Emulated tests take fewer cases of each property: what differs here differs in the first ones.
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CARGO_TERM_COLOR=never CARGO_TARGET_DIR=/target \
    CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0 PROPTEST_CASES="${PROPTEST_CASES:-16}" \
    chroot "$root" bash -c 'cd /src && exec cargo "$@"' cargo "${verb[@]}" --quiet --locked --offline --all-features --target "$target" \
    "${packages[@]/#/--package=}" || failed=1
done
exit $failed
