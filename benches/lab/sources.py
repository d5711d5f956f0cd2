#!/usr/bin/env python3
"""Measures how traces are read from where it is slow: benches/lab/sources.py [--peer PROGRAM] TRACE

The first table has the file in the system's cache and out of it, on its own disk and on simulated
slow ones (slow_disk.py); the second has the trace from a pipe. The times are milliseconds
of wall time and, in parentheses, of processor time: the best of several rounds in which all rows
run in turn. --peer names another reader, which is called as PROGRAM TRACE 1 and has to print "best
SECONDS s", of wall time. ETLKIT names the program; by default it is built for release. Needs Linux.
"""
import argparse
import os
import resource
import subprocess
import sys
import time

from by_size import build

DISKS = {
    "100 us, 200 MB/s": ["--latency", "0.0001", "--rate", "200e6"],
    "seeks of 5 ms, 100 MB/s": ["--seek", "0.005", "--rate", "100e6"],
}
HOWS = ["limit-map", "limit-file", "map", "map+sequential", "map+needed", "map+populate",
        "map+pieces", "file", "file+pieces"]
SLOW_DISK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_disk.py")


def timed(command):
    """Runs a whole process and prints its times as etl-walk does."""
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(0, usage.ru_utime + usage.ru_stime, time.monotonic() - start)


def measured(command, stdin=None):
    """Wall and processor seconds that a command prints."""
    out = subprocess.run(command, check=True, stdin=stdin, stdout=subprocess.PIPE, text=True)
    words = out.stdout.split()
    if "best" in words:
        return float(words[words.index("best") + 1]), None
    return float(words[2]), float(words[1])


def cell(runs):
    wall, processor = min(runs, key=lambda run: run[0])
    return f"{wall * 1e3:.1f}" + ("" if processor is None else f" ({processor * 1e3:.1f})")


def table(head, rows, columns, run, rounds):
    """Prints the best times that `run` measures for each row and column."""
    runs = {(row, column): [] for row in rows for column in columns}
    for _ in range(rounds):
        for row, column in runs:
            runs[row, column].append(run(rows[row], columns[column]))
    print(f"\n| {head} | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for row in rows:
        print(f"| {row} | " + " | ".join(cell(runs[row, column]) for column in columns) + " |")


def from_pipe(command, trace):
    with subprocess.Popen(["cat", trace], stdout=subprocess.PIPE) as cat:
        return measured(command, cat.stdout)


def main():
    if sys.argv[1:2] == ["timed"]:
        timed(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("--peer", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    program = os.environ.get("ETLKIT") or build()
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "etl-bench", "--bin",
                    "etl-walk"], check=True)
    walk = f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/release/etl-walk"
    trace, this = options.trace, [sys.executable, os.path.abspath(__file__), "timed"]

    def run(command, disk):
        if isinstance(disk, list):
            return measured([sys.executable, SLOW_DISK, *disk, trace, *command])
        if disk == "cold":
            measured([walk, "drop", trace, "1"])
        return measured([word.replace("{}", trace) for word in command])

    rows = {how: [walk, how, "{}", "1"] for how in HOWS}
    rows["etlkit info"] = [*this, program, "info", "--threads", "1", "--format", "json", "{}"]
    if options.peer:
        rows["peer"] = [options.peer, "{}", "1"]
    columns = {"in the cache": None, "own disk": "cold", **DISKS}
    table("read from", rows, columns, run, options.rounds)

    rows = {"wc -c": [*this, "wc", "-c"], "limit-pipe": [walk, "limit-pipe", "-", "1"],
            "pipe": [walk, "pipe", "-", "1"]}
    table("from a pipe", rows, {"times": None}, lambda command, _: from_pipe(command, trace),
          options.rounds)


if __name__ == "__main__":
    main()
