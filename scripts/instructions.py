#!/usr/bin/env python3
"""Counts the instructions of the hot loops under callgrind: scripts/instructions.py [OLD.json]

Prints a table and JSON. With the JSON of an earlier run, which must have been made by the same
compiler and valgrind, prints the change of each loop and ends with 1 where one takes over 3 % more.
A loop's count is the difference between running it twice and once, so that starting drops out.
"""
import json
import re
import subprocess
import sys
import tempfile

MAX_MORE = 0.03


def main():
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "etl-bench"], check=True)
    meta = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"],
                          check=True, capture_output=True)
    program = json.loads(meta.stdout)["target_directory"] + "/release/etl-bench"

    def count(name, times):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["valgrind", "--tool=callgrind", "--quiet",
                            f"--callgrind-out-file={out.name}", program, name, str(times)],
                           check=True)
            text = open(out.name, encoding="utf-8", errors="replace").read()
        return int(re.search(r"^(?:totals|summary): *(\d+)", text, re.M)[1])

    names = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    counts = {name: count(name, 2) - count(name, 1) for name in names}
    old = json.load(open(sys.argv[1], encoding="utf-8")) if len(sys.argv) > 1 else {}
    worse = False
    for name, now in counts.items():
        before = old.get(name)
        change = now / before - 1 if before else 0.0
        worse |= change > MAX_MORE
        print(f"{name:<16}{now:>14,}{change:>+9.2%}" if before else f"{name:<16}{now:>14,}",
              file=sys.stderr)
    print(json.dumps(counts, indent=2))
    sys.exit(worse)


main()
