"""Reads the portable PDB of the package pythonnet by its specification (ECMA-335 metadata with the
tables of portable PDBs).

Prints its path, its GUID, and each sequence point as [token, IL offset, file, line], one JSON value
a line. Hidden points have the line null.
"""
import importlib.util
import json
import os
import struct
import uuid

[folder] = importlib.util.find_spec("pythonnet").submodule_search_locations
path = os.path.join(folder, "runtime", "Python.Runtime.pdb")
print(json.dumps(path))
data = open(path, "rb").read()
assert data[:4] == b"BSJB"
at = 16 + struct.unpack_from("<I", data, 12)[0]
count = struct.unpack_from("<H", data, at + 2)[0]
at += 4
streams = {}
for _ in range(count):
    offset, size = struct.unpack_from("<II", data, at)
    end = data.index(b"\0", at + 8)
    streams[data[at + 8:end].decode()] = data[offset:offset + size]
    at = end + 4 - (end - at) % 4

tables, blobs = streams["#~"], streams["#Blob"]
print(json.dumps(str(uuid.UUID(bytes_le=streams["#Pdb"][:16]))))
heaps = tables[6]
valid = struct.unpack_from("<Q", tables, 8)[0]
present = [number for number in range(64) if valid >> number & 1]
rows = dict(zip(present, struct.unpack_from(f"<{len(present)}I", tables, 24)))
at = 24 + 4 * len(present)
GUID, BLOB = (4 if heaps & 2 else 2), (4 if heaps & 4 else 2)
assert present[0] == 0x30, "the first table is that of documents"
document_size = BLOB + GUID + BLOB + GUID
documents = [tables[at + row * document_size:][:document_size] for row in range(rows[0x30])]
at += document_size * rows[0x30]
DOCUMENT = 4 if rows[0x30] >= 0x10000 else 2


def number(field):
    return int.from_bytes(field, "little")


def unsigned(blob, at):
    """A compressed integer, the position after it, and its bits."""
    first = blob[at]
    if first < 0x80:
        return first, at + 1, 7
    if first < 0xC0:
        return (first & 0x3F) << 8 | blob[at + 1], at + 2, 14
    return int.from_bytes(blob[at:at + 4], "big") & 0x1FFFFFFF, at + 4, 29


def signed(blob, at):
    value, after, bits = unsigned(blob, at)
    return (value >> 1) - ((1 << (bits - 1)) if value & 1 else 0), after


def blob(offset):
    size, start, _ = unsigned(blobs, offset)
    return blobs[start:start + size]


def document(row):
    name = blob(number(documents[row - 1][:BLOB]))
    separator, parts, at = chr(name[0]) if name[0] else "", [], 1
    while at < len(name):
        part, at, _ = unsigned(name, at)
        parts.append(blob(part).decode() if part else "")
    return separator.join(parts)


names = {}
for method in range(1, rows[0x31] + 1):
    row = tables[at:at + DOCUMENT + BLOB]
    at += DOCUMENT + BLOB
    file, offset = number(row[:DOCUMENT]), number(row[DOCUMENT:])
    if not offset:
        continue
    points = blob(offset)
    _, place, _ = unsigned(points, 0)
    if not file:
        file, place, _ = unsigned(points, place)
    il, line, column, is_first, has_line = 0, 0, 0, True, False
    while place < len(points):
        step, place, _ = unsigned(points, place)
        if step == 0 and not is_first:
            file, place, _ = unsigned(points, place)
            continue
        il += step
        is_first = False
        lines, place, _ = unsigned(points, place)
        columns, place = unsigned(points, place)[:2] if lines == 0 else signed(points, place)
        if lines == 0 and columns == 0:
            print(json.dumps([0x06000000 | method, il, None, None]))
            continue
        if not has_line:
            line, place, _ = unsigned(points, place)
            column, place, _ = unsigned(points, place)
            has_line = True
        else:
            step, place = signed(points, place)
            line += step
            step, place = signed(points, place)
            column += step
        if file not in names:
            names[file] = document(file)
        print(json.dumps([0x06000000 | method, il, names[file], line]))
