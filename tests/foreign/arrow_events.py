"""Compares the events in Arrow and Parquet files, as Polars and DuckDB read them, with those that
`dump --format jsonl` printed. Runs in the folder with the files."""

import json
from datetime import datetime, timezone

import duckdb
import polars as pl

with open("events.jsonl", encoding="utf-8") as file:
    lines = [json.loads(line) for line in file]

NAMES = {
    "cpu": "cpu",
    "pid": "pid",
    "process": "process",
    "thread": "thread",
    "tid": "tid",
    "provider": "provider",
    "event": "event",
    "id": "id",
    "version": "version",
    "level": "level",
    "opcode": "opcode",
    "task": "task",
    "kind": "kind",
    "activity": "activity",
    "related_activity": "related_activity",
    "provider_guid": "provider_guid",
    "payload_size": "payload_size",
    "payload_left": "payload_left",
    "payload_text": "payload_text",
    "message": "message",
    "opcode_name": "opcode_name",
    "task_name": "task_name",
    "level_name": "level_name",
    "channel_name": "channel_name",
    "user": "user",
    "session_id": "session_id",
    "timestamp": "timestamp",
}


def micros(text):
    """Microseconds of an ISO 8601 time with seven digits of fraction."""
    whole, fraction = text.rstrip("Z").split(".")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
    return int(seconds) * 1_000_000 + int(fraction) // 10


def check(rows, source):
    assert len(rows) == len(lines), (source, len(rows), len(lines))
    for at, (row, line) in enumerate(zip(rows, lines)):
        # A provider without a name has its GUID in its place.
        line = {"provider": line.get("provider_guid"), **line}
        for column, key in NAMES.items():
            assert row[column] == line.get(key), (source, at, column, row[column], line.get(key))
        assert row["sequence"] == at, (source, at)
        assert row["us"] == micros(line["time"]), (source, at, row["us"], line["time"])
        assert row["filetime"] % 10 == int(line["time"][-2]), (source, at)
        fields = row["fields"]
        fields = None if fields is None else json.loads(fields)
        assert fields == line.get("fields"), (source, at, fields, line.get("fields"))
        keyword = line.get("keyword")
        bits = None if keyword is None else int(keyword, 16)
        assert row["keyword"] is None if bits is None else row["keyword"] % 2**64 == bits, source


def of_polars(frame):
    return frame.with_columns(pl.col("time").dt.epoch("us").alias("us")).drop("time").to_dicts()


check(of_polars(pl.read_ipc("events.arrow")), "Arrow file in Polars")
check(of_polars(pl.read_ipc_stream("events.arrows")), "Arrow stream in Polars")
parquet = "set/events/*.parquet"
check(of_polars(pl.read_parquet(parquet).sort("sequence")), "Parquet in Polars")
result = duckdb.connect().execute(
    f"SELECT * EXCLUDE (time), epoch_us(time) AS us FROM read_parquet('{parquet}') ORDER BY sequence"
)
columns = [d[0] for d in result.description]
check([dict(zip(columns, row)) for row in result.fetchall()], "Parquet in DuckDB")
print(f"{len(lines)} events")
