"""Computes collections, compiled methods, exceptions and waits for locks from the CLR's events: of
a trace as `etlkit dump --format jsonl` prints it, or of `truth.jsonl` for one of its sessions.
Ticks have to be those of 10 MHz.

Prints one JSON object."""

import collections
import json
import sys

RUNTIME = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
BACKGROUND = 1

session = sys.argv[2] if len(sys.argv) > 2 else None
clrs = collections.defaultdict(lambda: {"gcs": [], "suspended": None, "allocated": 0})
jitting, compiled = {}, []
exceptions = collections.Counter()
locks, waiting = collections.defaultdict(lambda: [0, 0]), {}


def number(value):
    return int(value, 16) if isinstance(value, str) else value


for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event.get("provider_guid") != RUNTIME:
        continue
    if session and event.get("sessions", {}).get(session) != "recorded":
        continue
    name, fields, time = event["event"].split("_V")[0], event["fields"], event["timestamp"]
    pid, tid = event["pid"], event["tid"]
    clr = clrs[pid, fields.get("ClrInstanceID", 0)]
    gcs = clr["gcs"]
    if name == "GCSuspendEEBegin":
        clr["suspended"] = (time, fields["Reason"], len(gcs))
    elif name == "GCStart":
        if not gcs or gcs[-1]["number"] != fields["Count"]:
            gcs.append({"pid": pid, "number": fields["Count"], "generation": fields["Depth"],
                        "type": fields["Type"], "start": time, "end": None, "pause": 0,
                        "allocated": clr["allocated"], "promoted": None, "heap": None})
            clr["allocated"] = 0
    elif name == "GCEnd":
        for gc in gcs:
            if gc["number"] == fields["Count"]:
                gc["end"] = time
                clr["last"] = gc
    elif name == "GCHeapStats":
        sizes = lambda prefix: sum(number(v) for k, v in fields.items() if k.startswith(prefix))
        clr["last"]["heap"] = sizes("GenerationSize")
        clr["last"]["promoted"] = sizes("TotalPromotedSize")
    elif name == "GCRestartEEEnd" and clr["suspended"]:
        since, reason, before = clr["suspended"]
        clr["suspended"] = None
        inside = gcs[before:]
        beside = [gc for gc in gcs if gc["type"] == BACKGROUND and gc["end"] is None]
        owner = inside[:1] or (beside[-1:] if reason in (1, 6) else [])
        for gc in owner:
            gc["pause"] += time - since
    elif name == "GCAllocationTick":
        amount = fields.get("AllocationAmount64", fields.get("AllocationAmount"))
        clr["allocated"] += number(amount)
    elif name == "MethodJittingStarted":
        jitting[pid, tid, number(fields["MethodID"])] = (time, fields["MethodILSize"])
    elif name == "MethodLoadVerbose" and number(fields["MethodFlags"]) & 8:
        start = jitting.pop((pid, tid, number(fields["MethodID"])), None)
        dot = "." if fields["MethodNamespace"] else ""
        compiled.append([pid, tid, fields["MethodNamespace"] + dot + fields["MethodName"],
                         start and (time - start[0]) / 10, start and number(start[1]),
                         number(fields["MethodSize"])])
    elif name == "ExceptionThrown":
        exceptions[f"{pid}|{fields['ExceptionType']}"] += 1
    elif name == "ContentionStart":
        waiting[pid, tid] = time
    elif name == "ContentionStop" and (pid, tid) in waiting:
        waits = locks[f"{pid}|{tid}"]
        waits[0] += 1
        waits[1] += time - waiting.pop((pid, tid))

gcs = sorted((gc for clr in clrs.values() for gc in clr["gcs"]), key=lambda gc: gc["start"])
print(json.dumps({
    "gc": [[gc["pid"], gc["number"], gc["generation"],
            None if gc["end"] is None else (gc["end"] - gc["start"]) / 10, gc["pause"] / 10,
            gc["allocated"], gc["promoted"], gc["heap"]] for gc in gcs],
    "jit": compiled,
    "exceptions": exceptions,
    "contention": {key: [count, ticks / 10] for key, (count, ticks) in locks.items()},
}))
