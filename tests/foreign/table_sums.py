"""Compares the tables of what a trace adds up to, as DuckDB reads them, with the events that they
are made of, as `dump` prints them, and with the report of `verify`. Runs in the folder with `set`,
`events.jsonl` and `verify.json`; arguments: the tables that must have rows."""

import json
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone

import duckdb

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def micros(text):
    """Microseconds since 1970 of an ISO 8601 text with seven digits of fraction."""
    if text is None:
        return None
    time = datetime.fromisoformat(text.rstrip("Z")[:26]).replace(tzinfo=timezone.utc)
    return (time - EPOCH) // timedelta(microseconds=1)


def same(name, columns, expected):
    rows = duckdb.sql(f"SELECT {columns} FROM read_parquet('set/{name}/*.parquet')").fetchall()
    found, expected = Counter(rows), Counter(expected)
    more, missing = found - expected, expected - found
    assert not more and not missing, f"{name}: more {more}, missing {missing}"
    assert rows or name not in sys.argv[1:], f"{name}: no rows"
    print(f"{name}: {len(rows)} rows")


with open("events.jsonl", encoding="utf-8") as file:
    events = [json.loads(line) for line in file]
with open("verify.json", encoding="utf-8") as file:
    report = json.load(file)


def named(name):
    return [event for event in events if event["event"].startswith(name)]


# A collection has an event when it starts, when it ends, and of its heap.
ends = {event["fields"]["Count"]: micros(event["time"]) for event in named("GCEnd")}
heaps = [event["fields"] for event in named("GCHeapStats")]
collections = named("GCStart")
assert len(collections) == len(heaps)
same(
    "gcs",
    "pid, number, generation, reason, type, epoch_us(started), epoch_us(ended), "
    "gen0_bytes, gen1_bytes, gen2_bytes, large_object_bytes",
    [
        (
            event["pid"],
            event["fields"]["Count"],
            event["fields"]["Depth"],
            event["fields"]["Reason_name"],
            event["fields"]["Type_name"],
            micros(event["time"]),
            ends.get(event["fields"]["Count"]),
            *(heap[f"GenerationSize{generation}"] for generation in range(4)),
        )
        for event, heap in zip(collections, heaps)
    ],
)
# A packet is an event here: its layers are.
same(
    "packets",
    "filetime // 10 - 11644473600000000, pid, tid, place, length_bytes, lower(hex(data))",
    [
        (
            micros(event["time"]),
            event["pid"],
            event["tid"],
            f"eth:{event['fields']['MiniportIfIndex']}:{event['fields']['LowerIfIndex']}",
            event["fields"]["FragmentSize"],
            event["fields"]["Fragment"],
        )
        for event in events
        if event.get("provider") == "Microsoft-Windows-NDIS-PacketCapture" and event["id"] == 1001
    ],
)

# The report.
same(
    "losses",
    'kind, epoch_us("from"), epoch_us("to"), cpu',
    [
        (loss["what"], micros(loss["from"]), micros(loss["to"]), loss["processor"])
        for loss in report["losses"]
    ],
)
same(
    "findings",
    'rule, severity, outcome, pid, epoch_us(time), cpu, "offset", message, because',
    [
        (
            *(finding[key] for key in ("rule", "severity", "outcome", "pid")),
            micros(finding["time"]),
            *(finding[key] for key in ("processor", "offset", "message", "because")),
        )
        for finding in report["findings"]
    ],
)

# Input and output: each operation is an event.
totals = {}
for event in events:
    key = (event.get("provider"), event["event"])
    operation = {
        ("DiskIo", "Read"): "disk read",
        ("DiskIo", "Write"): "disk write",
        ("DiskIo", "FlushBuffers"): "disk flush",
        ("FileIo", "Read"): "file read",
        ("FileIo", "Write"): "file write",
    }.get(key)
    if operation:
        total = totals.setdefault(operation, [0, 0])
        total[0] += 1
        total[1] += event["fields"].get("TransferSize", event["fields"].get("IoSize", 0))
rows = duckdb.sql(
    "SELECT operation, sum(count)::BIGINT, sum(bytes)::BIGINT "
    "FROM read_parquet('set/io/*.parquet') GROUP BY operation"
).fetchall()
assert {operation: [count, size] for operation, count, size in rows} == totals, (rows, totals)
assert rows or "io" not in sys.argv, "io: no rows"
