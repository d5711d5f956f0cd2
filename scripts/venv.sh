#!/usr/bin/env bash
# Makes .venv with the foreign readers that tests and benchmarks compare against.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! .venv/bin/python -c 'import dissect.etl, etl' 2>/dev/null; then
  python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
fi
.venv/bin/python -c 'import dissect.etl, etl; print("foreign readers are ready")'
