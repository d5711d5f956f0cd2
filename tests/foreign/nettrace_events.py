"""Reads EventPipe streams with an independent reader and prints one JSON object per stream.

The first argument is the reader, nettrace.py; the others are streams. Each event is a line of text,
so that a difference can be read.
"""

import importlib.util
import json
import sys


def field_text(field):
    name, kind = field
    return f"{name}:{type_text(kind)}"


def type_text(kind):
    name, *rest = kind
    if name == "object":
        return "object(" + ",".join(map(field_text, rest[0])) + ")"
    if name in ("array", "relloc", "dataloc"):
        return f"{name}({type_text(rest[0])})"
    if name == "fixed":
        return f"fixed({type_text(rest[0])},{rest[1]})"
    return name


def metadata_text(meta):
    fields = ",".join(map(field_text, meta.fields))
    return (
        f"{meta.mid} {meta.provider}/{meta.id}v{meta.version} {meta.name!r} level {meta.level} "
        f"keywords {meta.keywords:#x} opcode {meta.opcode} fields {fields}"
    )


def event_text(event):
    stack = " ".join(f"{address:x}" for address in event.stack or ())
    return (
        f"{event.pos:#x} {event.provider}/{event.id}v{event.version} {event.name!r} "
        f"level {event.level} keywords {event.keywords:#x} number {event.seq} pid {event.pid} "
        f"thread {event.thread} captured by {event.capture_thread} on {event.proc} "
        f"at {event.time} activity {event.activity} related {event.related} "
        f"barrier {event.sorted} stack [{stack}] payload {event.payload.hex()}"
    )


def lost(trace):
    """Lost events: gaps, and the numbers before the first event of each thread, which begin at 1."""
    seen, first = set(), 0
    for item in trace.items:
        if hasattr(item, "threads"):
            # A thread whose events are all lost is only in sequence points.
            for thread, number in item.threads:
                first += 0 if thread in seen else number
                seen.add(thread)
        else:
            first += 0 if item.capture_thread in seen else item.seq - 1
            seen.add(item.capture_thread)
    return first + sum(count for _, _, count, _ in trace.dropped())


def described(trace):
    events = trace.events()
    numbers = {id(event): number for number, event in enumerate(events)}
    points = [item for item in trace.items if hasattr(item, "threads")]
    start = trace.utc.timestamp() if trace.utc else None
    return {
        "header": f"version {trace.major} pointers {trace.ptr} pid {trace.pid} "
        f"processors {trace.nproc} ticks {trace.qpc} frequency {trace.freq}",
        "start_ms": None if start is None else round(start * 1000),
        "metadata": [metadata_text(meta) for meta in trace.metas.values()],
        "events": [event_text(event) for event in events],
        "time_order": [numbers[id(event)] for event in trace.sorted_events()],
        "points": [f"{point.pos:#x} {point.time} {point.threads}" for point in points],
        "lost": lost(trace),
        "complete": trace.complete,
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("nettrace", sys.argv[1])
    reader = importlib.util.module_from_spec(spec)
    # The folder of the reader may be read-only.
    sys.dont_write_bytecode = True
    spec.loader.exec_module(reader)
    for path in sys.argv[2:]:
        print(json.dumps(described(reader.load(path))), flush=True)
