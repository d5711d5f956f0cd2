#!/usr/bin/env python3
"""Runs a command while a file lies on a slow disk.

    benches/lab/slow_disk.py [--seek S ..] FILE COMMAND

`{}` in an argument of the command is the path of the file on that disk: a file system (FUSE) in a
mount namespace of its own, which answers each read of the kernel only when the simulated disk would
have. So the kernel's cache and its read-ahead work as on any disk. Needs Linux and `unshare`.
"""
import argparse
import heapq
import os
import select
import struct
import subprocess
import sys
import tempfile
import time

# Of linux/fuse.h, version 7.31.
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, INIT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 26, 42
ASYNC_READ, MAX_PAGES = 1 << 0, 1 << 22
KEEP_CACHE = 1 << 1
NO_ENTRY, NOT_IMPLEMENTED = 2, 38
READ_AHEAD = 128 << 10  # as Linux has it for most disks
DIRECTORY, FILE = (1, 0o40555), (2, 0o100444)  # node and mode
FOREVER = 1 << 30


class Disk:
    """When a read is done: one after the other, each with the time of its transfer."""

    def __init__(self, options):
        self.options = options
        self.free = 0.0
        self.end = 0

    def done(self, offset, size):
        now = time.monotonic()
        seek = self.options.seek if offset != self.end else 0
        # Reads wait for their latency together, but seek and transfer one after the other.
        start = max(now + self.options.latency, self.free)
        self.free = start + seek + size / self.options.rate
        self.end = offset + size
        return self.free


class Files:
    """A directory with one file: what the kernel asks, but reads."""

    def __init__(self, path):
        self.name = os.path.basename(path).encode()
        self.size = os.path.getsize(path)

    def attributes(self, node):
        inode, mode = FILE if node == FILE[0] else DIRECTORY
        size = self.size if node == FILE[0] else 0
        return struct.pack("<6Q10I", inode, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, code, node, body):
        if code == INIT:
            flags = ASYNC_READ | MAX_PAGES
            sizes = 64, 64, 4096, 1, 256, 0, 0
            return struct.pack("<4I2H2I2HI28x", 7, 31, READ_AHEAD, flags, *sizes)
        if code == LOOKUP and body.rstrip(b"\0") == self.name:
            entry = struct.pack("<4Q2I", FILE[0], 0, FOREVER, FOREVER, 0, 0)
            return entry + self.attributes(FILE[0])
        if code == GETATTR:
            return struct.pack("<Q2I", FOREVER, 0, 0) + self.attributes(node)
        if code == OPEN:
            return struct.pack("<Q2I", 0, KEEP_CACHE, 0)
        if code == RELEASE:
            return b""
        return NO_ENTRY if code == LOOKUP else NOT_IMPLEMENTED


def serve(device, path, disk, child):
    """Answers the kernel until the command ends."""
    files, file, late = Files(path), os.open(path, os.O_RDONLY), []
    while child is None or child.poll() is None:
        while late and late[0][0] <= time.monotonic():
            _, request, offset, size = heapq.heappop(late)
            reply(device, request, os.pread(file, size, offset))
        wait = min(0.01, max(0, late[0][0] - time.monotonic())) if late else 0.01
        if not select.select([device], [], [], wait)[0]:
            continue
        message = os.read(device, 1 << 20)
        _, code, request, node = struct.unpack_from("<2I2Q", message)
        if code == READ:
            offset, size = struct.unpack_from("<8xQI", message, 40)
            size = max(0, min(size, files.size - offset))
            heapq.heappush(late, (disk.done(offset, size), request, offset, size))
        elif code not in (FORGET, BATCH_FORGET):
            reply(device, request, files.answer(code, node, message[40:]))
        if code == INIT and child is None:
            return


def reply(device, request, answer):
    error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
    os.write(device, struct.pack("<IiQ", 16 + len(data), error, request) + data)


def run(options):
    with tempfile.TemporaryDirectory() as directory:
        device = os.open("/dev/fuse", os.O_RDWR)
        mount = f"fd={device},rootmode=40555,user_id=0,group_id=0"
        subprocess.run(["mount", "--internal-only", "-t", "fuse", "-o", mount, "slow", directory],
                       check=True, pass_fds=[device])
        disk = Disk(options)
        serve(device, options.file, disk, None)
        path = os.path.join(directory, os.path.basename(options.file))
        child = subprocess.Popen([word.replace("{}", path) for word in options.command])
        serve(device, options.file, disk, child)
        subprocess.run(["umount", "--lazy", directory], check=True)
        return child.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0, help="seconds until a read begins")
    parser.add_argument("--seek", type=float, default=0,
                        help="seconds more for a read that does not follow the one before")
    parser.add_argument("--rate", type=float, default=200e6, help="bytes per second")
    parser.add_argument("file")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if os.environ.get("SLOW_DISK") != "mounts":
        os.environ["SLOW_DISK"] = "mounts"
        os.execvp("unshare", ["unshare", "--map-root-user", "--mount", sys.executable, *sys.argv])
    sys.exit(run(options))


if __name__ == "__main__":
    main()
