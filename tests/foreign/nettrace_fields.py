"""Decodes the fields of EventPipe events by the metadata of an independent reader.

The first argument is the reader, nettrace.py; the others are streams. For each stream, prints a JSON
list with one entry for each event in time order: its name and its fields, or null if the stream does
not describe the event.
"""

import importlib.util
import json
import math
import struct
import sys

NUMBERS = {
    "i8": "b",
    "u8": "B",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "u64": "Q",
    "f32": "f",
    "f64": "d",
}


def number(reader, kind):
    layout = "<" + NUMBERS[kind]
    value = struct.unpack(layout, reader.take(struct.calcsize(layout)))[0]
    return value if math.isfinite(value) else None


def value(reader, kind):
    name, *rest = kind
    if name in NUMBERS:
        return number(reader, name)
    if name == "bool32":
        return reader.u32() != 0
    if name == "str16":
        return reader.str16()
    if name == "guid":
        return str(reader.guid())
    if name == "array":
        return [value(reader, rest[0]) for _ in range(reader.u16())]
    if name == "object":
        return fields(reader, rest[0])
    raise ValueError(f"a field of type {name}")


def fields(reader, kinds):
    return {name: value(reader, kind) for name, kind in kinds}


def described(judge, event):
    if not event.meta.fields:
        return None
    reader = judge.R(bytes(event.payload))
    return {"name": event.name, "fields": fields(reader, event.meta.fields)}


def main():
    judge_path, *paths = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("nettrace", judge_path)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    for path in paths:
        with open(path, "rb") as file:
            trace = judge.Trace(file.read())
        print(json.dumps([described(judge, event) for event in trace.sorted_events()]))


main()
