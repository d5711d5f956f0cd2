"""Computes the CPU profile of a trace from the events that `etlkit dump --format jsonl` prints:
samples and their stacks, images, and methods of the CLR, joined without any code of etlkit.

Samples in interrupts of idle processors have a key of their own among the processes, for example
"DPC of processor 2".

Prints one JSON object: samples; by method and by process: samples in it and below, and in it."""

import bisect
import collections
import json
import sys

KERNEL = 1 << 63
STACKS = {"Stack", "StackKeyKernel", "StackKeyUser"}

samples, stacks, keys = [], collections.defaultdict(list), collections.defaultdict(list)
threads, images, methods, modules = {}, {}, {}, {}


def number(value):
    return int(value, 16) if isinstance(value, str) else value


def change(table, key, time, start, size, label, kind):
    """A range begins, ends, or is listed: [start, end, from, to, label] by its key."""
    ranges = table.setdefault(key, [])
    known = [r for r in ranges if r[0] == start and r[3] is None]
    if kind == "end":
        if known:
            known[-1][3] = time
        else:
            ranges.append([start, start + size, None, time, label])
    elif not known:
        ranges.append([start, start + size, time if kind == "begin" else None, None, label])


late_methods = []
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    provider, name, fields, time = (
        event.get("provider"), event["event"], event.get("fields", {}), event["timestamp"])
    if provider == "PerfInfo" and name == "SampleProf":
        tid = fields["ThreadId"]
        # Since version 2 of the event, the lowest two bits of the flags are "DPC" and "ISR".
        flags = number(fields["Flags"]) & 3 if event["version"] >= 2 else 0
        interrupt = None
        if tid == 0 and flags:
            interrupt = f"{'DPC' if flags == 1 else 'ISR'} of processor {event['cpu']}"
        samples.append(
            (time, tid, number(fields["InstructionPointer"]), threads.get(tid), interrupt))
    elif provider == "StackWalk" and name in STACKS:
        part = [number(a) for a in fields["Stack"]] if name == "Stack" else None
        key = None if part else (fields["StackKey"], len(keys[fields["StackKey"]]))
        stacks[fields["EventTimeStamp"], fields["StackThread"]].append((part, key))
    elif provider == "StackWalk" and name in ("KeyDelete", "KeyRundown"):
        keys[fields["StackKey"]].append([number(a) for a in fields["Stack"]])
    elif provider == "Thread" and name in ("Start", "DCStart", "DCEnd"):
        if name == "Start" or fields["TThreadId"] not in threads:
            threads[fields["TThreadId"]] = fields["ProcessId"]
    elif provider == "Image":
        if "ImageBase" not in fields or "FileName" not in fields:
            continue
        kind = {"Load": "begin", "Unload": "end"}.get(name, "listed")
        label = fields["FileName"].replace("/", "\\").split("\\")[-1] + "!?"
        pid = 4 if fields["ProcessId"] == 0 else fields["ProcessId"]
        change(images, pid, time, number(fields["ImageBase"]), fields["ImageSize"], label, kind)
    elif name.startswith(("MethodLoadVerbose", "MethodUnloadVerbose", "MethodDCEndVerbose")):
        late_methods.append((event["pid"], time, fields, name))
    elif name.startswith(("ModuleLoad", "ModuleDCEnd", "ModuleUnload")):
        modules[event["pid"], fields["ModuleID"]] = fields["ModuleILPath"].split("\\")[-1]

for pid, time, fields, name in late_methods:
    kind = "begin" if "Load" in name and "Unload" not in name else "end"
    kind = "listed" if "DCEnd" in name else kind
    module = modules.get((pid, fields["ModuleID"])) or "?"
    space, method = fields["MethodNamespace"], fields["MethodName"]
    label = f"{module}!{space}.{method}" if space else f"{module}!{method}"
    change(methods, pid, time, number(fields["MethodStartAddress"]),
           number(fields["MethodSize"]), label, kind)

indexes = {}


def owner(table, key, address, time):
    if (id(table), key) not in indexes:
        ranges = sorted(table.get(key, []), key=lambda r: r[0])
        indexes[id(table), key] = ([r[0] for r in ranges], ranges)
    starts, ranges = indexes[id(table), key]
    found = None
    at = bisect.bisect_right(starts, address)
    for start, end, since, until, label in reversed(ranges[max(0, at - 64):at]):
        if start <= address < end:
            if (since is None or since <= time) and (until is None or time <= until):
                if found is None or (until or 1 << 63) < found[0]:
                    found = (until or 1 << 63, label)
    return found and found[1]


def label(pid, address, time):
    return (owner(methods, pid, address, time) or owner(images, pid, address, time)
            or owner(images, 4, address, time) or "?")


by_method = collections.defaultdict(lambda: [0, 0])
by_process = collections.defaultdict(lambda: [0, None])
for time, tid, address, pid, interrupt in samples:
    pid = 0 if tid == 0 else threads.get(tid) if pid is None else pid
    kernel, user = [], []
    for part, key in stacks.get((time, tid), []):
        if part is None:
            name, use = key
            part = keys[name][use] if use < len(keys[name]) else []
        # One record may have both parts.
        kernel += [a for a in part if a >= KERNEL]
        user += [a for a in part if a < KERNEL]
    stack = kernel + user
    if not stack or stack[0] != address:
        stack.insert(0, address)
    names = [label(pid, a, time) for a in stack]
    by_method[names[0]][1] += 1
    for name in set(names):
        by_method[name][0] += 1
    by_process[interrupt or str(pid)][0] += 1

print(json.dumps({"samples": len(samples), "method": by_method, "process": by_process}))
