"""Checks the tables of a processed profile of the Firefox Profiler (version 66), and prints what is
in it as one JSON object: FILE."""

import collections
import gzip
import json
import re
import sys

path = sys.argv[1]
data = open(path, "rb").read()
assert (data[:2] == b"\x1f\x8b") == path.endswith(".gz")
profile = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)
meta, shared, libs = profile["meta"], profile["shared"], profile["libs"]
assert meta["preprocessedProfileVersion"] == 66
texts = shared["stringArray"]
assert len(set(texts)) == len(texts)


def table(rows, columns):
    """Each column has as many values as the table has rows."""
    assert set(columns) | {"length"} == set(rows), (sorted(rows), sorted(columns))
    for column in columns:
        assert len(rows[column]) == rows["length"], column
    return rows


def index(values, count, allowed=()):
    """Each value is an index, or one of those that stand for none."""
    for value in values:
        assert value in allowed or isinstance(value, int) and 0 <= value < count, (value, count)


frames = table(shared["frameTable"], ["address", "inlineDepth", "category", "subcategory", "func",
                                      "nativeSymbol", "innerWindowID", "line", "column",
                                      "originalLocation"])
functions = table(shared["funcTable"], ["name", "isJS", "relevantForJS", "resource", "source",
                                        "lineNumber", "columnNumber", "originalLocation"])
resources = table(shared["resourceTable"], ["type", "lib", "name", "host"])
stacks = table(shared["stackTable"], ["frame", "prefixOffset"])
table(shared["nativeSymbols"], ["libIndex", "address", "name", "functionSize"])
table(shared["sources"], ["id", "filename", "startLine", "startColumn", "sourceMapURL", "content"])
table(shared["sourceLocationTable"], ["source", "line", "column"])
index(frames["func"], functions["length"])
index(frames["category"], len(meta["categories"]))
for category, sub in zip(frames["category"], frames["subcategory"]):
    assert 0 <= sub < len(meta["categories"][category]["subcategories"])
index(functions["name"], len(texts))
index(functions["resource"], resources["length"], [-1])
index(resources["name"], len(texts))
index(resources["lib"], len(libs), [None])
index(stacks["frame"], frames["length"])
for at, offset in enumerate(stacks["prefixOffset"]):
    assert 0 <= offset <= at, (at, offset)
used = set(zip(stacks["frame"], (o and i - o for i, o in enumerate(stacks["prefixOffset"]))))
assert len({(function, resource) for function, resource in
            zip(functions["name"], functions["resource"])}) == functions["length"]
for library in libs:
    assert re.fullmatch("[0-9A-F]{32}[0-9a-f]+", library["breakpadId"]), library
    assert library["codeId"] is None or re.fullmatch("[0-9A-F]{8}[0-9a-f]+", library["codeId"])
for frame, address in enumerate(frames["address"]):
    resource = functions["resource"][frames["func"][frame]]
    has_library = resource >= 0 and resources["lib"][resource] is not None
    assert (address >= 0) == has_library, (frame, address)


def label(stack):
    """Module and function of the last frame of a stack, and its category."""
    frame = stacks["frame"][stack]
    function = frames["func"][frame]
    name, resource = texts[functions["name"][function]], functions["resource"][function]
    if resource < 0:
        return "?"
    if resources["lib"][resource] is not None:
        assert name == f"{frames['address'][frame]:#x}", (name, frame)
        name = "?"
    return f"{texts[resources['name'][resource]]}!{name}"


paths = []
for stack, offset in enumerate(stacks["prefixOffset"]):
    above, own = paths[stack - offset] if offset else [], label(stack)
    # An image counts once where no method is known between.
    paths.append(above if above and own.endswith("?") and above[-1] == own else above + [own])

schemas = {schema["name"]: schema for schema in meta["markerSchema"]}
threads = []
identities = set()
for thread in profile["threads"]:
    identity = (thread["pid"], thread["tid"])
    assert identity not in identities
    identities.add(identity)
    samples = thread["samples"]
    columns = ["stack", "timeDeltas"] + ["threadCPUDelta"] * ("threadCPUDelta" in samples)
    assert samples["weight"] is None
    rows = {key: value for key, value in samples.items() if key not in ("weight", "weightType")}
    table(rows, columns)
    index(samples["stack"], stacks["length"], [None])
    assert all(delta >= 0 for delta in samples["timeDeltas"])
    assert all(delta >= 0 for delta in samples.get("threadCPUDelta", []))
    counts, categories, times, now = collections.Counter(), collections.Counter(), [], 0
    for stack, delta in zip(samples["stack"], samples["timeDeltas"]):
        now += delta
        if stack is not None:
            counts[";".join(paths[stack])] += 1
            categories[meta["categories"][frames["category"][stacks["frame"][stack]]]["name"]] += 1
            times.append(round(now, 4))
    columns = ["data", "name", "startTime", "endTime", "phase", "category"]
    markers = table(thread["markers"], columns)
    index(markers["name"], len(texts))
    index(markers["category"], len(meta["categories"]))
    found = []
    for data, name, start, end, phase, category in zip(*(markers[column] for column in columns)):
        assert (end is not None) == (phase == 1) and phase in (0, 1, 2), phase
        assert start >= 0 and (end is None or end >= start)
        fields = {field["key"]: field["format"] for field in schemas[data["type"]]["fields"]}
        assert set(data) <= set(fields) | {"type", "cause"}, data
        named = {key: texts[value] if fields.get(key) == "unique-string" else value
                 for key, value in data.items()}
        if "cause" in data:
            cause = data["cause"]
            assert cause["tid"] == thread["tid"] and cause["time"] == start, (cause, start)
            index([cause["stack"]], stacks["length"])
            named["cause"] = ";".join(paths[cause["stack"]])
        found.append({"name": texts[name], "start": start, "end": end,
                      "category": meta["categories"][category]["name"], **named})
    assert [m["start"] for m in found] == sorted(m["start"] for m in found)
    threads.append({"process": thread["processName"], "pid": thread["pid"], "tid": thread["tid"],
                    "name": thread["name"], "main": thread["isMainThread"], "stacks": counts,
                    "categories": categories, "times": times, "markers": found})
print(json.dumps({"threads": threads, "libs": libs, "interval": meta["interval"]}))
