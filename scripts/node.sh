#!/usr/bin/env bash
# Makes .node with the readers in Node.js that tests compare with, in the versions of
# scripts/node/package.json. Exits with 3 where there is no Node.js.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v node >/dev/null && command -v npm >/dev/null || { echo "there is no Node.js"; exit 3; }
mkdir -p .node
if ! cmp -s scripts/node/package.json .node/package.json || [ ! -d .node/node_modules ]; then
  cp scripts/node/package.json .node/package.json
  npm install --prefix .node --no-audit --no-fund --ignore-scripts --silent
fi
(cd .node && node -e 'require("pprof-format"); console.log("readers in Node.js are ready")')
