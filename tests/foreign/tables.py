"""Compares the tables of a simulated trace, as DuckDB reads them, with the truth of the simulation,
and with what `dump` prints. Runs in the folder with all of these: `set`, `truth.jsonl`,
`events.jsonl`."""

import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import zip_longest

import duckdb

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def lines(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def table(name, columns):
    """The rows of a table."""
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('set/{name}/*.parquet')").fetchall()


def micros(text):
    """Microseconds since 1970 of an ISO 8601 text with seven digits of fraction."""
    time = datetime.fromisoformat(text.rstrip("Z")[:26]).replace(tzinfo=timezone.utc)
    return (time - EPOCH) // timedelta(microseconds=1)


def signed(number):
    """A number whose highest bit of 64 is the sign; hexadecimal texts are numbers."""
    number = int(number, 16) if isinstance(number, str) else number
    return number - (1 << 64) if number >> 63 else number


def same(name, found, expected, least=1):
    found, expected = Counter(found), Counter(expected)
    more, missing = found - expected, expected - found
    assert not more and not missing, f"{name}: more {more}, missing {missing}"
    assert found.total() >= least, f"{name}: only {found.total()} rows"
    print(f"{name}: {found.total()} rows")


events = lines("events.jsonl")
truth = {}
for line in lines("truth.jsonl"):
    truth.setdefault(line["kind"], []).append(line)


def of(provider, *names):
    """The events of these names, with their numbers."""
    return [
        (at, event)
        for at, event in enumerate(events)
        if event.get("provider") == provider and event["event"] in names
    ]


def raised(name):
    """Fields of the events that were raised and are in a trace."""
    recorded = [e for e in truth["event"] if "recorded" in e["sessions"].values()]
    return [event["fields"] for event in recorded if event["event"] == name]


def times(provider, name, *fields):
    """When events were, by the values of fields."""
    return {
        tuple(event["fields"][field] for field in fields): micros(event["time"])
        for _, event in of(provider, name)
    }


# What lives: the truth says what there was, events when it began and ended.
started, ended = (times("Process", name, "ProcessId") for name in ("Start", "End"))
same(
    "processes",
    table("processes", "pid, process, epoch_us(started), epoch_us(ended)"),
    [
        (p["pid"], p["name"], started.get((p["pid"],)), ended.get((p["pid"],)))
        for p in truth["process"]
    ],
)
assert Counter(p["pid"] for p in truth["process"] if "exited_ns" in p) == Counter(
    pid for (pid,) in ended
)
listed = {e["fields"]["ProcessId"]: e["fields"] for _, e in of("Process", "DCStart", "Start")}
last = {e["fields"]["ProcessId"]: e["fields"] for _, e in of("Process", "End")}
same(
    "processes, the rest",
    table("processes", "pid, parent_pid, session_id, user, command_line, exit_status"),
    [
        (
            pid,
            fields["ParentId"],
            fields["SessionId"],
            fields["UserSID"],
            fields["CommandLine"] or None,
            int(last[pid]["ExitStatus"], 16) if pid in last else None,
        )
        for pid, fields in listed.items()
    ],
)

started, ended = (times("Thread", name, "ProcessId", "TThreadId") for name in ("Start", "End"))
begins = {}
for _, event in of("Thread", "DCStart", "Start"):
    fields = event["fields"]
    begins[fields["ProcessId"], fields["TThreadId"]] = signed(fields["Win32StartAddr"])
same(
    "threads",
    table("threads", "pid, tid, epoch_us(started), epoch_us(ended), start_address"),
    [
        (*key, started.get(key), ended.get(key), begins[key] or None)
        # The truth has those that live at the end.
        for key in {(t["pid"], t["tid"]) for t in truth["thread"]} | ended.keys()
    ],
)

loaded = times("Image", "Load", "ProcessId", "ImageBase")
unloaded = times("Image", "Unload", "ProcessId", "ImageBase")
ids = {(i["pid"], i["base"]): i for i in truth.get("identity", [])}
images = []
for _, event in of("Image", "DCStart", "Load"):
    fields = event["fields"]
    key = (fields["ProcessId"], fields["ImageBase"])
    known = ids.get((key[0], int(key[1], 16)), {})
    images.append(
        (
            key[0],
            signed(key[1]),
            fields["ImageSize"],
            loaded.get(key),
            unloaded.get(key),
            known.get("pdb_signature"),
            known.get("pdb_age"),
        )
    )
same(
    "images",
    table(
        "images",
        "pid, address, size_bytes, epoch_us(loaded), epoch_us(unloaded), pdb_guid, pdb_age",
    ),
    images,
)

assemblies = {a["id"]: a for a in truth["assembly"]}
domains = {d["id"]: d["name"] for d in truth["app_domain"]}
same(
    "modules",
    table("modules", "pid, clr, module_id, path, assembly, domain, pdb_guid"),
    [
        (
            m["pid"],
            m["clr_instance"],
            signed(m["id"]),
            m["path"],
            assemblies[m["assembly_id"]]["name"],
            domains[assemblies[m["assembly_id"]]["app_domain_id"]],
            m["pdb_signature"],
        )
        for m in truth["module"]
    ],
)
same(
    "methods",
    table("methods", "pid, method_id, module_id, address, size_bytes, type, method"),
    [
        (
            c["pid"],
            signed(c["method_id"]),
            signed(c["module_id"]),
            signed(c["start"]),
            c["size"],
            c["namespace"],
            c["name"],
        )
        for c in truth["code"]
    ],
)

# What happened: each row is an event, whose fields the simulation set.
switches = of("Thread", "CSwitch")
same(
    "context_switches",
    table(
        "context_switches",
        "sequence, filetime // 10 - 11644473600000000, cpu, old_tid, new_tid, "
        "old_state, wait_reason",
    ),
    [
        (
            at,
            micros(e["time"]),
            e["cpu"],
            e["fields"]["OldThreadId"],
            e["fields"]["NewThreadId"],
            e["fields"]["OldThreadState"],
            e["fields"]["OldThreadWaitReason_name"],
        )
        for at, e in switches
    ],
)
same(
    "context_switches, truth",
    table("context_switches", "old_tid, new_tid, old_state"),
    [(f["OldThreadId"], f["NewThreadId"], f["OldThreadState"]) for f in raised("CSwitch")],
)
owners = {tid: pid for pid, tid in begins if tid}
names = {p["pid"]: p["name"] for p in truth["process"]}
for tid, pid, name in table(
    "context_switches", "old_tid, old_pid, old_process"
) + table("context_switches", "new_tid, new_pid, new_process"):
    owner = owners.get(tid, 0)
    assert (pid, name) == (owner, names[owner]), (tid, pid, name)

same(
    "samples",
    table("samples", "sequence, cpu, tid, address"),
    [
        (at, e["cpu"], e["fields"]["ThreadId"], signed(e["fields"]["InstructionPointer"]))
        for at, e in of("PerfInfo", "SampleProf")
    ],
)
same(
    "samples, truth",
    table("samples", "tid, address, pid, process"),
    [
        (f["ThreadId"], signed(f["InstructionPointer"]), owner, names[owner])
        for f, owner in ((f, owners.get(f["ThreadId"], 0)) for f in raised("SampleProf"))
    ],
)
# Of 10,000 times 100 ns each.
assert {weight for (weight,) in table("samples", "weight_us")} == {1000}

# Stacks: parts of one event are joined, the kernel's first. Two events at one time have two stacks.
((width,),) = table("traces", "pointer_bytes")
parts = {}
for fields in raised("Stack"):
    addresses = tuple(signed(a) for a in fields["Stack"])
    kernel, user = parts.setdefault((fields["EventTimeStamp"], fields["StackThread"]), ([], []))
    is_kernel = addresses[0] % 2**64 >> (8 * width - 1)
    (kernel if is_kernel else user).append(addresses)
joined = [
    kernel + user
    for both in parts.values()
    for kernel, user in zip_longest(*both, fillvalue=())
]
# The CLR logs stacks of its own events.
joined += [tuple(signed(a) for a in fields["Stack"]) for fields in raised("CLRStackWalk")]
frames = {}
for stack, address in duckdb.sql(
    "SELECT stack_id, address FROM read_parquet('set/frames/*.parquet') ORDER BY stack_id, depth"
).fetchall():
    frames.setdefault(stack, []).append(address)
same(
    "event_stacks",
    [tuple(frames[stack]) for (stack,) in table("event_stacks", "stack_id")],
    joined,
)
depths = dict(table("stacks", "stack_id, depth"))
assert depths == {stack: len(addresses) for stack, addresses in frames.items()}

# What `info` counts.
((records, first, final),) = table("traces", "events, epoch_us(first), epoch_us(last)")
assert records == len(events) == len(table("events", "sequence"))
assert (first, final) == (micros(events[0]["time"]), micros(events[-1]["time"]))
