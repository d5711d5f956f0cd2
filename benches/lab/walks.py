#!/usr/bin/env python3
"""Compares the ordered walk with its limits and with another reader.

    benches/lab/walks.py [TRACE ...]

Each row is a trace from its file, on one thread: the plain pass over its bytes, through a map and
through reads, the walk of its records in time order, and with --peer the walk of that program. It
is called as PROGRAM TRACE TIMES and has to print "best SECONDS s". A second table has compressed
traces on two threads, and what four and eight would give. Each time is the median of rounds in
which all programs run in turn, and each round's is the least of several walks. --sizes 10M,1G adds
simulated traces, plain and compressed.
"""
import argparse
import os
import statistics
import subprocess
import tempfile

from by_size import BYTES_PER_SECOND, UNITS, build

HOWS = ["limit-map", "limit-file", "map", "file"]


def measured(command):
    """Records, and seconds of processor time; on several threads of wall time. None where the
    program cannot read the trace."""
    out = subprocess.run(command, capture_output=True, text=True)
    words = out.stdout.split()
    if out.returncode != 0:
        return None
    if "best" in words:
        return 0, float(words[words.index("best") + 1])
    return int(words[0]), float(words[2] if command[4:] else words[1])


def in_turn(commands, rounds):
    """Records and the median of the seconds of each command."""
    results = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            results[name].append(measured(command))
    return {name: (seen[0][0], statistics.median(seconds for _, seconds in seen))
            for name, seen in results.items() if all(seen)}


def times(path):
    """How often a round walks a trace: less often the larger it is."""
    return str(max(1, min(100, 40_000_000 // os.path.getsize(path))))


def simulated(program, sizes, directory):
    for size in sizes:
        seconds = 1 + int(size[:-1]) * UNITS[size[-1]] / BYTES_PER_SECOND
        out = f"{directory}/{size}"
        subprocess.run([program, "synth", "benches/scenarios/big.kdl", "-o", out, "--no-truth",
                        "--set", f"until={seconds:.3f}s", "--set", f"stop={seconds + 10:.3f}s"],
                       check=True, capture_output=True)
        plain, packed = f"{directory}/simulated-{size}.etl", f"{directory}/packed-{size}.etl"
        os.rename(f"{out}/big.etl", plain)
        subprocess.run([program, "compress", plain, "-o", packed], check=True, capture_output=True)
        yield plain
        yield packed


def one_thread(walk, peer, path, rounds):
    commands = {how: [walk, how, path, times(path)] for how in HOWS}
    if peer:
        commands["peer"] = [peer, path, times(path)]
    found = in_turn(commands, rounds)
    milliseconds = {name: f"{seconds * 1e3:.3f}" for name, (_, seconds) in found.items()}
    records = found["map"][0]
    best = min(found["map"][1], found["file"][1])
    limit = min(found["limit-map"][1], found["limit-file"][1])
    ratio = f"{found['peer'][1] / best:.2f}" if "peer" in found else ""
    bound = f"{found['peer'][1] / limit:.2f}" if "peer" in found else ""
    cells = [os.path.basename(path), f"{os.path.getsize(path) / 1e6:.2f}", str(records)]
    cells += [milliseconds[how] for how in HOWS]
    cells += [f"{limit / best:.2f}", milliseconds.get("peer", ""), ratio, bound]
    print("| " + " | ".join(cells) + " |", flush=True)


def threads(walk, path, rounds):
    """A row of the second table, if the walk gains by a second thread."""
    found = in_turn({"one": [walk, "memory", path, times(path)],
                     "serial": [walk, "plain", path, times(path)],
                     "two": [walk, "memory", path, times(path), "2"]}, rounds)
    one, serial, two = (found[name][1] for name in ("one", "serial", "two"))
    share = serial / one
    if share > 0.8:
        return
    cells = [os.path.basename(path), f"{one * 1e3:.3f}", f"{two * 1e3:.3f}", f"{share:.2f}"]
    # At best, one thread merges and the others decompress.
    cells += [f"{max(one * share, one / count) * 1e3:.3f}" for count in (2, 4, 8)]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    parser.add_argument("--peer", metavar="PROGRAM")
    parser.add_argument("--sizes", default="", help="of simulated traces, such as 10M,100M,1G,4G")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sizes = [size for size in options.sizes.split(",") if size]
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "etl-bench", "--bin",
                    "etl-walk"], check=True)
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    walk = f"{target}/release/etl-walk"
    with tempfile.TemporaryDirectory() as directory:
        made = list(simulated(build(), sizes, directory)) if sizes else []
        paths = options.traces + made
        print("| trace | MB | records | pass, map: ms | pass, reads | walk, map | walk, reads "
              "| share of limit | peer | peer / walk | peer / limit |\n|---|" + "---:|" * 10)
        for path in paths:
            one_thread(walk, options.peer, path, options.rounds)
        print("\n| compressed trace | one thread: ms | two | serial share | at best: two | four "
              "| eight |\n|---|" + "---:|" * 6)
        for path in paths:
            threads(walk, path, options.rounds)


if __name__ == "__main__":
    main()
