"""Computes collections, compiled methods, exceptions, waits for locks, what thread pools did and
what was loaded from the CLR's events: of a trace as `etlkit dump --format jsonl` prints it, or of `truth.jsonl` for one of its sessions.
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
pool, queues, queued = [], collections.defaultdict(lambda: [0, 0, 0]), {}
loads, searches, found_before = [], [], {}
allocations = False

# Events of threads of the pool: which threads, what happened.
POOL = {
    "WorkerThreadCreate": ("workers", "started"),
    "WorkerThreadTerminate": ("workers", "ended"),
    "WorkerThreadRetire": ("workers", "retired"),
    "WorkerThreadUnretire": ("workers", "returned"),
    "IOThreadCreate": ("I/O", "started"),
    "IOThreadTerminate": ("I/O", "ended"),
    "IOThreadRetire": ("I/O", "retired"),
    "IOThreadUnretire": ("I/O", "returned"),
    "ThreadPoolWorkerThreadStart": ("workers", "started"),
    "ThreadPoolWorkerThreadStop": ("workers", "ended"),
    "ThreadPoolWorkerThreadRetirementStart": ("workers", "retired"),
    "ThreadPoolWorkerThreadRetirementStop": ("workers", "returned"),
    "ThreadPoolWorkerThreadAdjustmentAdjustment": ("workers", "adjusted"),
}
QUEUES = {"ThreadPoolEnqueue": ("work", True), "ThreadPoolDequeue": ("work", False),
          "ThreadPoolIOEnqueue": ("I/O", True), "ThreadPoolIODequeue": ("I/O", False)}
NAMES = {"Module": "ModuleILPath", "Assembly": "FullyQualifiedAssemblyName",
         "AppDomain": "AppDomainName"}


# Numbers of a generation in the history of a heap; the truth has them without their names.
GENERATION = ["SizeBefore", "FreeListBefore", "FreeObjBefore", "SizeAfter", "FreeListAfter",
              "FreeObjAfter", "In", "PinnedSurv", "NonePinnedSurv", "NewAllocation"]


def load_of(event):
    """What is loaded or unloaded by an event: its kind, and whether it is a load."""
    for kind in NAMES:
        for word in ("Load", "Unload"):
            if event == kind + word:
                return kind, word == "Load"
    return None


def number(value):
    return int(value, 16) if isinstance(value, str) else value


# The truth is in the order in which the machine was simulated, not quite in that of times.
events = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
for event in sorted(events, key=lambda event: event.get("timestamp", 0)):
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
                        "type": fields["Type"], "start": time, "end": None, "pause": None,
                        "allocated": clr["allocated"], "promoted": None, "heap": None,
                        "heaps": []})
            clr["allocated"] = 0
    elif name == "GCEnd":
        for gc in gcs:
            if gc["number"] == fields["Count"]:
                gc["end"] = time
                clr["last"] = gc
    elif name == "GCPerHeapHistory":
        running = [gc for gc in gcs if gc["end"] is None]
        named = lambda v: v if isinstance(v, dict) else dict(zip(GENERATION, v))
        generations = [named(v) for v in fields["Values"]]
        total = lambda *names: sum(number(v[n]) for v in generations for n in names)
        running[-1]["heaps"].append(
            [fields["HeapIndex"], total("SizeBefore"), total("SizeAfter"),
             total("PinnedSurv", "NonePinnedSurv"), total("FreeListAfter", "FreeObjAfter"),
             number(generations[2]["SizeBefore"]), number(generations[1]["SizeAfter"])])
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
            gc["pause"] = (gc["pause"] or 0) + time - since
        for gc in inside[1:]:
            gc["pause"] = 0
    elif name == "GCAllocationTick":
        amount = fields.get("AllocationAmount64", fields.get("AllocationAmount"))
        clr["allocated"] += number(amount)
        allocations = True
    elif name == "MethodJittingStarted":
        jitting[pid, tid, number(fields["MethodID"])] = (time, fields["MethodILSize"])
    elif name == "MethodLoadVerbose" and number(fields["MethodFlags"]) & 8:
        start = jitting.pop((pid, tid, number(fields["MethodID"])), None)
        dot = "." if fields["MethodNamespace"] else ""
        compiled.append([pid, tid, fields["MethodNamespace"] + dot + fields["MethodName"],
                         start and (time - start[0]) / 10, start and number(start[1]),
                         number(fields["MethodSize"])])
    elif name in POOL:
        counts = [v for k, v in fields.items()
                  if k.endswith("ThreadCount") and not k.startswith("Retired")]
        pool.append([pid, tid, *POOL[name], counts[0], fields.get("AverageThroughput")])
    elif name in QUEUES:
        queue, is_put = QUEUES[name]
        item = (pid, queue, number(fields.get("WorkID", fields.get("NativeOverlapped"))))
        counts = queues[f"{pid}|{queue}"]
        if is_put:
            counts[0] += 1
            queued[item] = time
        elif item in queued:
            counts[1] += 1
            counts[2] += time - queued.pop(item)
    elif load_of(name):
        kind, is_load = load_of(name)
        item = (pid, kind, number(fields[kind + "ID"]))
        if is_load:
            # .NET finds the program while it loads it, and later assemblies before it loads them.
            took = found_before.pop((pid, kind, fields[NAMES[kind]]), None)
            loads.append({"item": item, "name": fields[NAMES[kind]], "at": time, "to": None,
                          "took": took, "tid": tid})
        else:
            for load in loads:
                if load["item"] == item and load["to"] is None:
                    load["to"] = time
    elif name == "AssemblyLoadStart":
        searches.append((pid, tid, fields["AssemblyName"], time))
    elif name == "AssemblyLoadStop" and fields["Success"] and not fields["Cached"]:
        since = [at for *key, at in searches if key == [pid, tid, fields["AssemblyName"]]][-1]
        inside = [load for load in loads
                  if load["item"][:2] == (pid, "Assembly") and since <= load["at"] <= time
                  and load["name"] == fields["ResultAssemblyName"]]
        for load in inside:
            load["took"] = (time - since) / 10
        if not inside:
            found_before[pid, "Assembly", fields["ResultAssemblyName"]] = (time - since) / 10
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
            None if gc["end"] is None else (gc["end"] - gc["start"]) / 10,
            None if gc["pause"] is None else gc["pause"] / 10,
            gc["allocated"] if allocations else None, gc["promoted"], gc["heap"]] for gc in gcs],
    "heaps": [[gc["pid"], gc["number"], *heap] for gc in gcs for heap in gc["heaps"]],
    "pool": pool,
    "queues": {key: [put, taken, ticks / 10] for key, (put, taken, ticks) in queues.items()},
    "loads": [[load["item"][0], load["tid"], load["item"][1], load["name"], load["to"] is not None,
               load["took"]] for load in loads],
    "jit": compiled,
    "exceptions": exceptions,
    "contention": {key: [count, ticks / 10] for key, (count, ticks) in locks.items()},
}))
