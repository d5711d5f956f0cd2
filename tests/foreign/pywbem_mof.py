"""Compiles MOF with pywbem and decodes the events of a trace by it: MOF TRACE.

Prints a JSON object for each event of the class: the name of its type and its fields.
"""

import json
import struct
import sys
from uuid import UUID

from dissect.etl.etl import ETL
from pywbem import MOFCompiler, MOFWBEMConnection

# What Windows has before it compiles the MOF of a provider.
BASE = "".join(
    f"Qualifier {name} : {kind} = {value}, Scope(any);\n"
    for name, kind, value in [
        ("Dynamic", "boolean", "false"), ("Description", "string", "null"), ("Guid", "string", "null"),
        ("locale", "sint32", "0"), ("EventVersion", "sint32", "0"), ("DisplayName", "string", "null"),
        ("EventType", "sint32", "0"), ("EventTypeName", "string", "null"), ("WmiDataId", "sint32", "0"),
        ("read", "boolean", "true"), ("StringTermination", "string", "null"), ("format", "string", "null"),
        ("pointer", "boolean", "false"), ("extension", "string", "null"), ("MAX", "sint32", "0"),
    ]
) + "class EventTrace { };\n"

SIZES = {
    "uint8": "B", "sint8": "b", "uint16": "H", "sint16": "h", "uint32": "I", "sint32": "i",
    "uint64": "Q", "sint64": "q", "real32": "f", "real64": "d",
}


def text(payload, at, wide):
    unit = 2 if wide else 1
    end = at
    while payload[end:end + unit] != bytes(unit):
        end += unit
    return payload[at:end].decode("utf-16-le" if wide else "latin-1"), end + unit


def decode(cls, payload):
    """The fields of a payload, and how many bytes they leave."""
    properties = [p for p in cls.properties.values() if "WmiDataId" in p.qualifiers]
    properties.sort(key=lambda p: p.qualifiers["WmiDataId"].value)
    at, fields = 0, {}
    for p in properties:
        has = p.qualifiers
        if p.type == "string":
            assert has["StringTermination"].value == "NullTerminated"
            fields[p.name], at = text(payload, at, "format" in has and has["format"].value == "w")
        else:
            code = "Q" if "pointer" in has else SIZES[p.type]
            (fields[p.name],) = struct.unpack_from("<" + code, payload, at)
            at += struct.calcsize(code)
    return fields, len(payload) - at


if __name__ == "__main__":
    path, trace = sys.argv[1:]
    connection = MOFWBEMConnection()
    compiler = MOFCompiler(handle=connection)
    with open(path, encoding="utf-8") as file:
        namespace = "root/WMI"
        compiler.compile_string(BASE, namespace)
        # The path of a namespace in Windows has backslashes, which pywbem does not know.
        lines = [line for line in file if not line.startswith("#pragma namespace")]
        compiler.compile_string("".join(lines), namespace)
    classes = connection.classes[namespace]
    types, guid = {}, None
    for cls in classes.values():
        if "Guid" in cls.qualifiers:
            guid = UUID(cls.qualifiers["Guid"].value)
        if "EventType" in cls.qualifiers:
            version = classes[cls.superclass].qualifiers["EventVersion"].value
            types[cls.qualifiers["EventType"].value, version] = cls
    with open(trace, "rb") as file:
        for record in ETL(file):
            data = bytes(getattr(record.header, "data", b"")[:0x30])
            if record.header._marker.header_type not in (0x0A, 0x14):
                continue
            if UUID(bytes_le=data[0x18:0x28]) != guid:
                continue
            opcode, _, version = struct.unpack_from("<BBH", data, 4)
            cls = types[opcode, version]
            fields, left = decode(cls, bytes(record.header.payload))
            name = cls.qualifiers["EventTypeName"].value
            print(json.dumps({"symbol": name, "fields": fields, "left": left}))
