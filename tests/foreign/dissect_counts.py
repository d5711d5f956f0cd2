"""Counts the records of traces with dissect.etl and prints one JSON object per trace.

For each record the kind, the raw timestamp and the size go into a CRC-32 in file order, so that equal
digests mean equal streams. Events are counted under "kind|provider|hook|id|version|opcode|task|level|keyword".
"""

import collections
import json
import struct
import sys
import uuid
import zlib

from dissect.etl.etl import ETL

NAMES = {
    0x01: "SYSTEM32", 0x02: "SYSTEM64", 0x03: "COMPACT32", 0x04: "COMPACT64",
    0x0A: "FULL32", 0x0B: "INSTANCE32", 0x0F: "MESSAGE", 0x10: "PERFINFO32", 0x11: "PERFINFO64",
    0x12: "EVENT32", 0x13: "EVENT64", 0x14: "FULL64", 0x15: "INSTANCE64",
}


def guid(raw):
    return str(uuid.UUID(bytes_le=bytes(raw)))


def identity(kind, header):
    fields = header.header
    if kind.startswith("EVENT"):
        return (guid(fields.ProviderId), "", fields.Id, fields.Version, fields.OpCode, fields.Task,
                fields.Level, fields.Keywords)
    if kind.startswith(("SYSTEM", "COMPACT", "PERFINFO")):
        # The payload's version is the low byte of the marker.
        return ("", header.hook_id, 0, header.marker & 0xFF, header.opcode, 0, 0, 0)
    if kind.startswith(("FULL", "INSTANCE")):
        raw = bytes(header.data[:0x28])
        opcode, level, version = struct.unpack_from("<BBH", raw, 4)
        return (guid(raw[0x18:0x28]), "", 0, version, opcode, 0, level, 0)
    if kind == "MESSAGE":
        provider = header.provider_id
        return (str(provider) if provider else "", "", header.id, 0, 0, 0, 0, 0)
    return ("", "", 0, 0, 0, 0, 0, 0)


def survey(path):
    kinds = collections.Counter()
    events = collections.Counter()
    digest = 0
    with open(path, "rb") as file:
        trace = iter(ETL(file))
        while True:
            try:
                record = next(trace, None)
            except Exception as error:  # reported in the output
                return {"path": path, "error": f"{type(error).__name__}: {error}",
                        "before": sum(kinds.values())}
            if record is None:
                break
            header = record.header
            kind = NAMES.get(header._marker.header_type, "OTHER")
            kinds[kind] += 1
            events["|".join(str(part) for part in (kind, *identity(kind, header)))] += 1
            timestamp = header.time_delta
            packed = struct.pack("<Bqq", header._marker.header_type, -1 if timestamp is None else timestamp, record.size)
            digest = zlib.crc32(packed, digest)
    return {"path": path, "kinds": kinds, "events": events, "digest": digest,
            "records": sum(kinds.values())}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        try:
            result = survey(path)
        except Exception as error:  # reported in the output
            result = {"path": path, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
