#!/usr/bin/env bash
# Builds the Python package etwkit, installs it into an environment of its own (.cache/python), and
# runs its tests. `--heavy` builds for speed; other arguments are for pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=(--profile dev)
if [ "${1:-}" = --heavy ]; then
  shift
  profile=(--release)
fi

venv=.cache/python
[ -x $venv/bin/python ] || python3 -m venv $venv
$venv/bin/pip install --quiet --disable-pip-version-check \
  maturin==1.16.0 pytest==9.2.0 duckdb==2.0.1 polars==2.1.0 mypy==2.4.1 \
  pandas==3.1.1 pyarrow==26.0.1

# The builds of dependencies are shared with those of the workspace.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
cargo fmt --manifest-path python/Cargo.toml --check
PYO3_PYTHON="$PWD/$venv/bin/python" cargo clippy --quiet --manifest-path python/Cargo.toml --locked -- -D warnings
wheels=.cache/wheels
rm -rf $wheels
$venv/bin/maturin build --quiet "${profile[@]}" --locked --manifest-path python/Cargo.toml \
  --interpreter $venv/bin/python --out $wheels
$venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $wheels/*.whl

# The command line, which the tests compare with.
[ -x "${ETLKIT:-}" ] || { cargo build --quiet --locked --bin etlkit && export ETLKIT="$CARGO_TARGET_DIR/debug/etlkit"; }

# The types that are declared are those of the module.
$venv/bin/python -m mypy.stubtest etwkit --mypy-config-file python/tests/mypy.ini \
  --allowlist python/tests/stubtest.txt --ignore-unused-allowlist
$venv/bin/python -m pytest -q -c python/pyproject.toml --rootdir python python/tests "$@"
