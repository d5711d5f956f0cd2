#!/usr/bin/env bash
# Runs the data source of etwkit for Spark on generated traces, in several workers, and compares
# with DuckDB over the Parquet of the same traces. Heavy: needs Java 17 and 1 GB for packages. Its
# output is in docs/scale.md. Arguments: the number of recordings [200].
#
# ETLKIT is a command line with the feature parquet, SPARK_PYTHON a Python that has etwkit and the
# packages below; without them both are built.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${SPARK_PYTHON:-}" ]; then
  python/test.sh -k synth
  SPARK_PYTHON="$PWD/.cache/python/bin/python"
  "$SPARK_PYTHON" -m pip install --quiet pyspark==4.3.0 pyarrow==26.0.1 pandas==3.1.1 \
    duckdb==2.0.1 'moto[server]==5.2.5' s3fs==2026.9.0
fi
if [ -z "${ETLKIT:-}" ]; then
  cargo build --quiet --locked --bin etlkit --features parquet
  ETLKIT="$PWD/target/debug/etlkit"
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
count="${1:-200}"
synth() { "$ETLKIT" synth "corpus/$1.kdl" -o "$work/traces/$1" --count "$2" --no-truth >/dev/null; }
# One in ten has samples, processes and findings, in four traces.
synth gc-and-locks $((count - count / 10))
synth kernel-session $((count / 10))
status=0
"$ETLKIT" export parquet "$work/traces" -o "$work/dataset" >/dev/null || status=$?
# Findings are no failure.
[ $status -le 1 ]

export PYSPARK_PYTHON="$SPARK_PYTHON" ETLKIT
"$SPARK_PYTHON" python/spark.py "$work"
