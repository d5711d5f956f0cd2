#!/usr/bin/env python3
"""Counts the instructions of the hot loops under callgrind: benches/lab/instructions.py [OLD.json]

Prints a table and JSON. With the JSON of an earlier run, which must have been made by the same
compiler and valgrind, prints the change of each loop and ends with 1 where one takes over 3 % more.
--check compares with the committed counts and allows 15 % for another compiler or processor;
--write commits new ones. Only the loop itself is counted, without the simulation of its input.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

MAX_MORE = 0.03
MAX_MORE_ELSEWHERE = 0.15
COMMITTED = "benches/instructions.json"
COUNTED = "etl_bench::counted"
RUNS = 3


def main():
    argument = sys.argv[1] if len(sys.argv) > 1 else None
    check, write = argument == "--check", argument == "--write"
    most = MAX_MORE_ELSEWHERE if check else MAX_MORE
    path = COMMITTED if check else None if write else argument
    # With symbols, so that callgrind finds what it shall count.
    subprocess.run(["cargo", "build", "--profile", "profiling", "--locked", "-p", "etl-bench",
                    "--bin", "etl-bench"], check=True)
    meta = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"],
                          check=True, capture_output=True)
    program = json.loads(meta.stdout)["target_directory"] + "/profiling/etl-bench"

    def count_once(name):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["valgrind", "--tool=callgrind", "--quiet", "--collect-atstart=no",
                            f"--toggle-collect={COUNTED}", f"--callgrind-out-file={out.name}",
                            program, name], check=True)
            text = open(out.name, encoding="utf-8", errors="replace").read()
        counted = int(re.search(r"^(?:totals|summary): *(\d+)", text, re.M)[1])
        return counted or sys.exit(f"callgrind did not find {COUNTED}")

    # The C library clears memory in different ways from run to run: up to 13 % of a loop.
    def count(name):
        return min(count_once(name) for _ in range(RUNS))

    names = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(names, pool.map(count, names)))
    old = json.load(open(path, encoding="utf-8")) if path else {}
    if check and set(old) != set(counts):
        sys.exit(f"{COMMITTED} has other loops: run benches/lab/instructions.py --write")
    worse = False
    for name, now in counts.items():
        before = old.get(name)
        change = now / before - 1 if before else 0.0
        worse |= change > most
        print(f"{name:<16}{now:>14,}{change:>+9.2%}" if before else f"{name:<16}{now:>14,}",
              file=sys.stderr)
    text = json.dumps(counts, indent=2) + "\n"
    if write:
        open(COMMITTED, "w", encoding="utf-8").write(text)
    else:
        print(text, end="")
    if worse:
        print(f"a loop takes over {most:.0%} more instructions", file=sys.stderr)
    sys.exit(worse)


main()
