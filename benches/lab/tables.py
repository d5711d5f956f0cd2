#!/usr/bin/env python3
"""Measures how fast and in how much memory traces become tables.

    benches/lab/tables.py [--etlkit PATH] [--size BYTES] [--count N] [--tables A,B]

Simulates one large trace and many traces of 1 MB (benches/scenarios/big.kdl), exports both with one
job and with two, and prints a table: processor time, wall time, MB of trace per second of processor
time, and the largest resident memory of the process. Build the tool first:
cargo build --release -p etlkit --features parquet. The defaults, a trace of 1 GB and 1,000 of 1 MB,
take some 5 GB in the temporary folder.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of the scenario.
BYTES_PER_SECOND = 2_062e6 / 1_290


def run(command):
    """Processor seconds, wall seconds and MiB of resident memory of a command."""
    began = time.monotonic()
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) > 1:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    cpu = usage.ru_utime + usage.ru_stime
    return cpu, time.monotonic() - began, usage.ru_maxrss / 1024


def synth(etlkit, out, size, count):
    seconds = 1 + size / BYTES_PER_SECOND
    script = ROOT / "benches/scenarios/big.kdl"
    command = [etlkit, "synth", script, "-o", out, "--force", "--no-truth"]
    command += ["--set", f"until={seconds:.3f}s", "--set", f"stop={seconds + 10:.3f}s"]
    run(command + (["--count", count] if count > 1 else []))
    return sum(path.stat().st_size for path in Path(out).rglob("*.etl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--etlkit", default=ROOT / "target/release/etlkit")
    parser.add_argument("--size", type=float, default=1e9, help="bytes of the large trace")
    parser.add_argument("--count", type=int, default=1000, help="traces of 1 MB")
    parser.add_argument("--tables", default="", help="as of export parquet; default: all")
    args = parser.parse_args()
    tables = ["--tables", args.tables] if args.tables else []
    print("| traces | MB | jobs | CPU s | wall s | MB/s of CPU | peak MiB | data set MB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, size, count in [("one", args.size, 1), ("many", 1e6, args.count)]:
            traces = f"{folder}/{name}"
            total = synth(args.etlkit, traces, size, count)
            for jobs in (1, 2) if count > 1 else (1,):
                out = f"{folder}/{name}-{jobs}"
                export = [args.etlkit, "export", "parquet", traces, "-o", out, "--jobs", jobs]
                cpu, wall, peak = run(export + tables)
                written = sum(path.stat().st_size for path in Path(out).rglob("*.parquet"))
                print(
                    f"| {count} | {total / 1e6:.0f} | {jobs} | {cpu:.1f} | {wall:.1f} "
                    f"| {total / 1e6 / cpu:.1f} | {peak:.0f} | {written / 1e6:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
