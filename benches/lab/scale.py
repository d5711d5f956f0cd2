#!/usr/bin/env python3
"""Measures how `synth` scales with the machine and with time: benches/lab/scale.py [--whole]

Simulates benches/scenarios/large-machine.kdl with more and more processes, and for longer and
longer. Prints the tables of reports/performance.md: records, processor time, peak resident memory, and
the slopes between the first row and the last one: by what power of the records the time grows (1 is
linear), and by what power of the processes or of the duration the memory. `--whole` adds a trace of
10 GB of the whole machine. Needs Unix, and disk space for the largest trace.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

from by_size import build, run

SCENARIO = "benches/scenarios/large-machine.kdl"


def simulate(program, directory, **params):
    """Records, bytes, processor seconds and peak MiB of one simulation."""
    settings = [word for name, value in params.items() for word in ("--set", f"{name}={value}")]
    cpu, _, peak = run(program, ["synth", SCENARIO, "-o", directory, "--force", "--no-truth",
                                 *settings])
    trace = f"{directory}/clr.etl"
    info = subprocess.run([program, "info", "--format", "json", trace], check=False,
                          capture_output=True)
    return json.loads(info.stdout)["records"], os.path.getsize(trace), cpu, peak


def table(program, name, rows):
    """Prints a table; `rows` has the size of each row and its parameters."""
    print(f"\n| {name} | records | MB | CPU s | peak MiB |\n|---:|---:|---:|---:|---:|")
    results = []
    for size, params in rows:
        with tempfile.TemporaryDirectory() as directory:
            records, length, cpu, peak = simulate(program, directory, **params)
        results.append((size, records, cpu, peak))
        print(f"| {size:,} | {records:,} | {length / 1e6:,.0f} | {cpu:.1f} | {peak:.0f} |",
              flush=True)
    (size, records, cpu, peak), (last_size, last_records, last_cpu, last_peak) = \
        results[0], results[-1]
    time = math.log(last_cpu / cpu) / math.log(last_records / records)
    memory = math.log(last_peak / peak) / math.log(last_size / size)
    print(f"\nSlopes: {time:.2f} for time by records, {memory:.2f} for memory by {name}.")


def main():
    program = build()
    table(program, "processes", [(count, {"processes": count}) for count in (625, 1250, 2500, 5000)])
    durations = [(seconds, {"processes": 1000, "until": f"{seconds + 1}s", "stop": f"{seconds + 20}s"})
                 for seconds in (60, 120, 240, 480)]
    table(program, "seconds", durations)
    if "--whole" in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as directory:
            params = {"until": "1001s", "stop": "1020s"}
            records, length, cpu, peak = simulate(program, directory, **params)
        print(f"\nWhole: {records:,} records, {length / 1e9:.1f} GB, {cpu:.0f} s, {peak:.0f} MiB.")


if __name__ == "__main__":
    main()
