"""Computes what threads ran and waited for from the context switches in `truth.jsonl`.

Prints one JSON object. `threads` has by process and thread: ticks of running, switches, waits with
their ticks by reason, times ready with their ticks, and the threads that ended waits with the ticks
of the waits. `resumed` has the switches to threads that had waited: time, thread, ticks of the wait.
"""

import collections
import json
import sys

WAITING = 5
session = sys.argv[2]
new = lambda: {"running": 0, "switches": 0, "waits": {}, "ready": [0, 0], "wakers": {}}
threads = collections.defaultdict(new)
owner, current, state, resumed, last = {}, {}, {}, [], 0


def count(table, key, ticks):
    entry = table.setdefault(str(key), [0, 0])
    entry[0] += 1
    entry[1] += ticks


for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event.get("kind") == "thread":
        owner[event["tid"]] = event["pid"]
    if event.get("sessions", {}).get(session) != "recorded":
        continue
    name, fields = event["event"], event["fields"]
    if name in ("Start", "DCStart", "DCEnd") and "TThreadId" in fields:
        owner[fields["TThreadId"]] = fields["ProcessId"]

for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event.get("sessions", {}).get(session) != "recorded":
        continue
    name, fields, time = event["event"], event["fields"], event["timestamp"]
    last = max(last, time)
    if name == "CSwitch":
        before, after = fields["OldThreadId"], fields["NewThreadId"]
        current[event["processor"]] = after
        if before:
            kind, since = state.get(before, (None, None))[:2]
            if kind == "running":
                threads[before]["running"] += time - since
            if fields["OldThreadState"] == WAITING:
                state[before] = ("waiting", time, fields["OldThreadWaitReason"])
            else:
                state[before] = ("ready", time, None)
        if after:
            thread = threads[after]
            thread["switches"] += 1
            known = state.get(after)
            state[after] = ("running", time)
            if known and known[0] == "ready":
                thread["ready"][0] += 1
                thread["ready"][1] += time - known[1]
                if known[2] is not None:
                    resumed.append([time, after, known[2]])
            elif known and known[0] == "waiting":
                count(thread["waits"], known[2], time - known[1])
                resumed.append([time, after, time - known[1]])
    elif name == "ReadyThread":
        tid = fields["TThreadId"]
        known = state.get(tid)
        if known and known[0] == "waiting":
            state[tid] = ("ready", time, time - known[1])
            count(threads[tid]["waits"], known[2], time - known[1])
            if event["processor"] in current:
                count(threads[tid]["wakers"], current[event["processor"]], time - known[1])

for tid, (kind, since, *_) in state.items():
    if kind == "running":
        threads[tid]["running"] += last - since

by_name = {f"{owner.get(tid)}|{tid}": thread for tid, thread in threads.items()}
print(json.dumps({"threads": by_name, "resumed": resumed}))
