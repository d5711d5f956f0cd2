#!/usr/bin/env python3
"""Measures the commands on simulated traces of several sizes.

    benches/lab/by_size.py [--exports | 10M 100M 1G ..]

With --exports first it prints the table of exports in reports/performance.md: the formats on
simulated samples and packets. ETLKIT names the program; by default it is built for release.

Otherwise prints the table in reports/performance.md: processor time, wall time, rate and peak
resident memory of each command in a process of its own, on one thread and on two; the best of three runs up
to 128 MB, otherwise one run. The wall times give the serial share of the work, and that gives what
four and eight processors would take at best. Needs Unix, and disk space of 1.5 times the largest
size.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

BYTES_PER_SECOND = 2_062e6 / 1_290  # of the scenario benches/scenarios/big.kdl
UNITS = {"M": 10**6, "G": 10**9}

# Scenarios of exports with the file they write, its bytes per second, and the formats.
EXPORTS = [
    ("sampled", "sampled.etl", 4_600_000, ["perfetto", "folded", "firefox"]),
    ("packets", "packets.etl", 3_600_000, ["pcapng"]),
]


def run(program, arguments):
    """Processor seconds, wall seconds and peak resident MiB of one run."""
    start = time.monotonic()
    child = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{program} {' '.join(arguments)}: exit code {child.returncode}")
    wall = time.monotonic() - start
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def scaled(one, two):
    """Cells of a table: the serial share (Amdahl), and seconds on four and eight processors."""
    share = min(1, max(0, 2 * two / one - 1))
    return f"{share:.2f} | " + " | ".join(f"{one * (share + (1 - share) / n):.3f}" for n in (4, 8))


def twin(file):
    """A second name of a file: a merge refuses to read one file twice."""
    return file.replace(".etl", "-twin.etl")


def measure(program, size, directory):
    target = int(size[:-1]) * UNITS[size[-1]]
    runs = 3 if target <= 128_000_000 else 1
    seconds = 1 + target / BYTES_PER_SECOND
    out, packed = f"{directory}/out", f"{directory}/packed.etl"
    merged, again = f"{directory}/merged.etl", f"{directory}/again.etl"
    synth = ["synth", "benches/scenarios/big.kdl", "-o", out, "--force", "--no-truth",
             "--set", f"until={seconds:.3f}s", "--set", f"stop={seconds + 10:.3f}s"]
    rows = [("synth", "plain", synth, False)]
    plain = f"{out}/big.etl"
    rows.append(("compress", "plain", ["compress", plain, "-o", packed, "--force"], True))
    for kind, file in (("plain", plain), ("compressed", packed)):
        rows += [
            ("info", kind, ["info", "--format", "json", file], kind == "compressed"),
            ("dump, JSON lines", kind, ["dump", "--format", "jsonl", file], True),
            ("dump, CSV", kind, ["dump", "--format", "csv", file], True),
            ("verify", kind, ["verify", "--no-config", file], True),
            ("merge of two", kind, ["merge", file, twin(file), "-o", merged, "--force"],
             kind == "compressed"),
        ]
    rows.append(("decompress", "compressed", ["decompress", packed, "-o", again, "--force"], True))
    print(f"\n### {size}\n\n"
          "| command | trace | CPU s | wall s | MB/s | peak MiB "
          "| two threads: CPU s | wall s | peak MiB | serial share | at best: four, wall s "
          "| eight |\n"
          "|---|---|" + "---:|" * 10)
    for name, kind, arguments, threads in rows:
        if name == "merge of two" and not os.path.exists(arguments[2]):
            os.link(arguments[1], arguments[2])
        count = 1 if name in ("synth", "compress") else runs
        one = ["--threads", "1"] if name != "synth" else []
        cpu, wall, peak = min(run(program, arguments + one) for _ in range(count))
        length = os.path.getsize(plain) * (2 if name == "merge of two" else 1)
        row = f"| `{name}` | {kind} | {cpu:.3f} | {wall:.3f} | {length / cpu / 1e6:.0f} "
        row += f"| {peak:.0f} |"
        if threads:
            cpu, two, peak = min((run(program, arguments + ["--threads", "2"])
                                  for _ in range(count)), key=lambda measured: measured[1])
            row += f" {cpu:.3f} | {two:.3f} | {peak:.0f} | {scaled(wall, two)} |"
        else:
            row += " |" * 6
        print(row, flush=True)


def measure_exports(program, size, directory):
    target = int(size[:-1]) * UNITS[size[-1]]
    for name, file, bytes_per_second, formats in EXPORTS:
        seconds = 2 + target / bytes_per_second
        run(program, ["synth", f"benches/scenarios/{name}.kdl", "-o", f"{directory}/{name}",
                      "--force", "--no-truth", "--set", f"until={seconds:.3f}s",
                      "--set", f"stop={seconds + 5:.3f}s"])
        trace, out = f"{directory}/{name}/{file}", f"{directory}/out"
        length = os.path.getsize(trace)
        for kind in formats:
            arguments = ["export", kind, trace, "-o", out, "--force"]
            # Every sample of the scenario has addresses of its own.
            arguments += ["--max-memory", "3G"] if name == "sampled" and target >= 10**9 else []
            runs = 3 if target <= 128_000_000 else 1
            # Packets are written by one thread.
            one = ["--threads", "1"] if kind != "pcapng" else []
            cpu, wall, peak = min(run(program, arguments + one) for _ in range(runs))
            row = (f"| `{kind}` | {length / 1e6:.0f} MB | {cpu:.2f} | {length / cpu / 1e6:.0f} "
                   f"| {peak:.0f} | {os.path.getsize(out) / 1e6:.0f} MB | {wall:.2f} |")
            if one:
                two = min(run(program, arguments + ["--threads", "2"])[1] for _ in range(runs))
                row += f" {two:.2f} | {scaled(wall, two)} |"
            print(row, flush=True)


def build():
    """The path of the tool, built for release."""
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "etlkit"], check=True)
    meta = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"],
                          check=True, capture_output=True)
    return json.loads(meta.stdout)["target_directory"] + "/release/etlkit"


def main():
    program = os.environ.get("ETLKIT") or build()
    sizes = sys.argv[1:]
    if sizes[:1] == ["--exports"]:
        print("| format | trace | CPU s | MB/s | peak MiB | output | wall s | two threads: wall s "
              "| serial share | at best: four, wall s | eight |\n|---|" + "---:|" * 10)
        for size in sizes[1:] or ["10M", "100M", "1G"]:
            with tempfile.TemporaryDirectory() as directory:
                measure_exports(program, size, directory)
        return
    for size in sizes or ["10M", "100M", "1G", "4G"]:
        with tempfile.TemporaryDirectory() as directory:
            measure(program, size, directory)


if __name__ == "__main__":
    main()
