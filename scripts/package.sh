#!/usr/bin/env bash
# Makes the packages that would be published, and checks each: cargo prints no warning, licences and
# README are included, needed files are included, and no others. Publishes nothing.
#
#   scripts/package.sh [--verify]
#
# --verify also builds every package from its content and from the other packages (some minutes).
# Exit codes: 0 all packages are correct; 1 one is not.
set -euo pipefail
cd "$(dirname "$0")/.."

# In the order in which they would be published: each needs only those before it.
crates=(etl-format etl-providers etl-nettrace etl-schema etl-control etl-analysis etl-events etl-tools etl-synth etl-verify etl-export etl-tables etlkit)
declare -A place=([etl-format]=etl-format [etl-providers]=providers [etl-nettrace]=nettrace [etl-schema]=schema [etl-control]=control [etl-events]=events [etl-tools]=tools [etl-synth]=synth [etl-analysis]=analysis [etl-verify]=verify [etl-export]=export [etl-tables]=tables [etlkit]=cli)

wrong=0
complain() {
  echo "package: $1" >&2
  wrong=1
}

verify=--no-verify
[ "${1:-}" = --verify ] && verify=
said=$(mktemp)
trap 'rm -f "$said"' EXIT
# What is not committed yet is packed as well: this asks what would be, not whether it may be.
cargo package --locked --allow-dirty $verify "${crates[@]/#/--package=}" >"$said" 2>&1 || { cat "$said"; exit 1; }
# That integration tests stay out is meant so: many need the whole checkout.
if grep -E '^(warning|error)' "$said" | grep -v '^warning: ignoring test '; then complain "cargo has something to say"; fi

target=$(cargo metadata --format-version 1 --no-deps --locked | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
for crate in "${crates[@]}"; do
  here=${place[$crate]}
  for licence in LICENSE-MIT LICENSE-APACHE; do
    cmp -s "$licence" "$here/$licence" || complain "$here/$licence is not the workspace's: cp $licence $here/"
  done
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
  package=$target/package/$crate-$version.crate
  files=$(tar -tzf "$package" | sed "s|^$crate-$version/||" | sort)
  for file in Cargo.toml Cargo.toml.orig README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
    grep -qx "$file" <<<"$files" || complain "$crate lacks $file"
  done
  # What the code includes by name has to be in the package, tests apart.
  for file in $(cd "$here" && find tables templates examples data -type f 2>/dev/null || true); do
    grep -qx "$file" <<<"$files" || complain "$crate lacks $file"
  done
  foreign=$(grep -vE '^(Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json|README\.md|tables/README\.md|LICENSE-(MIT|APACHE)|(src|examples|tables)/.*\.(rs|txt|kdl)|templates/.*\.(html|kdl|md|txt|xml)|data/(README\.md|tables\.bin))$' <<<"$files" || true)
  [ -z "$foreign" ] || complain "$crate has what it should not: $foreign"
  printf '%-12s %4d files %8d bytes packed\n' "$crate" "$(wc -l <<<"$files")" "$(stat -c %s "$package")"
done
exit $wrong
