#!/usr/bin/env python3
"""Records the program Work.cs on real .NET runtimes, with several masks and levels at once.

    scripts/clr/record.py FOLDER OUTPUT [--runtime VERSION]...

FOLDER is made by setup.sh. OUTPUT gets a stream for each recording, RUNTIME_PROVIDER_MASK_LEVEL
.nettrace, and counts.json with what the program counted itself.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

RUNTIME = "Microsoft-Windows-DotNETRuntime"
# Mask and level of the runtime provider: without Threading, whose events are up to the machine.
MASKS = [(0x8, 4), (0x10, 4), (0x10, 5), (0x20010, 5), (0x90, 4), (0xA0, 4), (0x1, 4), (0x8000, 2)]
# Keywords of the rundown, which only .NET 9 and later can be asked for.
RUNDOWNS = [0x101, 0x108, 0x110, 0x120, 0x138, 0x20120, 0x20000100, 0x1000010100]

MAGIC = b"DOTNET_IPC_V1\0"
HEADER = struct.Struct("<14sHBBH")
OK = (0xFF, 0)
STOP_TRACING = (2, 1)
RESUME_RUNTIME = (4, 1)
NETTRACE = 1
BUFFER_MB = 256


def text(value):
    """A counted UTF-16 text with its zero."""
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16-le")


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError(f"{len(data)} of {size} bytes of an answer")
        data += part
    return data


def request(connection, command, payload=b""):
    """Sends a command and returns the payload of its answer."""
    size = HEADER.size + len(payload)
    connection.sendall(HEADER.pack(MAGIC, size, *command, 0) + payload)
    _, size, group, code, _ = HEADER.unpack(receive(connection, HEADER.size))
    answer = receive(connection, size - HEADER.size)
    if (group, code) != OK:
        raise RuntimeError(f"the runtime answers {answer.hex()}")
    return answer


class Session:
    """An EventPipe session, whose stream a thread writes to a file."""

    def __init__(self, path, version, mask, level, rundown, output):
        self.path = path
        payload = struct.pack("<II", BUFFER_MB, NETTRACE)
        command = 2
        if version != "3.1":
            command = 3
            payload += struct.pack("<B", rundown is not None)
        if float(version) >= 9 and rundown is not None:
            command = 5
            payload = struct.pack("<IIQB", BUFFER_MB, NETTRACE, rundown, True)
        payload += struct.pack("<IQI", 1, mask, level) + text(RUNTIME) + struct.pack("<I", 0)
        self.connection = connect(path)
        (self.id,) = struct.unpack("<Q", request(self.connection, (2, command), payload))
        self.output = output
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        with open(self.output, "wb") as file:
            while part := self.connection.recv(1 << 16):
                file.write(part)

    def stop(self):
        with connect(self.path) as connection:
            request(connection, STOP_TRACING, struct.pack("<Q", self.id))
        self.reader.join(60)


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def find_socket(folder, process):
    for _ in range(600):
        found = glob.glob(f"{folder}/tmp/dotnet-diagnostic-{process.pid}-*-socket")
        if found:
            return found[0]
        time.sleep(0.05)
    raise RuntimeError("the runtime opens no socket")


def record(folder, output, version, provider, mask, level):
    """Records one run of the program and returns what it counted itself."""
    dotnet = f"{folder}/dotnet-{version}/dotnet"
    environment = dict(os.environ)
    environment.update(TMPDIR=f"{folder}/tmp", DOTNET_ROOT=os.path.dirname(dotnet))
    environment["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"
    # From the first event on, where the runtime can wait for that.
    is_suspended = version != "3.1" and provider == "runtime"
    if is_suspended:
        environment["DOTNET_DefaultDiagnosticPortSuspend"] = "1"
    command = [dotnet, f"{folder}/app-{version}/Work.dll"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
    if not is_suspended:
        process.stdout.readline()
    path = find_socket(folder, process)
    name = f"{output}/{version}_{provider}_{mask:#x}_{level}.nettrace"
    if provider == "runtime":
        session = Session(path, version, mask, level, None, name)
    else:
        session = Session(path, version, 0x2000, 1, mask, name)
    if is_suspended:
        with connect(path) as connection:
            request(connection, RESUME_RUNTIME)
        process.stdout.readline()
    process.stdin.write("begin\n")
    process.stdin.flush()
    counted = json.loads(process.stdout.readline())
    if provider == "rundown":
        session.stop()
    process.stdin.write("end\n")
    process.stdin.close()
    session.reader.join(60)
    process.wait(60)
    return name, counted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("output")
    parser.add_argument("--runtime", action="append", help="3.1, 8.0 or 10.0; default: all that are installed")
    arguments = parser.parse_args()
    installed = sorted(path.rsplit("-", 1)[1] for path in glob.glob(f"{arguments.folder}/dotnet-*"))
    os.makedirs(arguments.output, exist_ok=True)
    jobs = []
    for version in arguments.runtime or installed:
        jobs += [(version, "runtime", mask, level) for mask, level in MASKS]
        if float(version) >= 9:
            jobs += [(version, "rundown", mask, 5) for mask in RUNDOWNS]
    if not jobs:
        sys.exit("no runtime is installed")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(record, arguments.folder, arguments.output, *job) for job in jobs]
        counts = {os.path.basename(name): counted for name, counted in (run.result() for run in runs)}
    with open(f"{arguments.output}/counts.json", "w") as file:
        json.dump(counts, file, indent=1, sort_keys=True)
    print(f"{len(counts)} streams in {arguments.output}")


if __name__ == "__main__":
    main()
