"""Decodes the events of a trace with dissect.etl by an XML manifest: MANIFEST TRACE.

Prints a JSON object for the provider, and one for each of its events: symbol and fields.
"""

import json
import sys
from uuid import UUID
from xml.etree import ElementTree

from dissect.etl import manifest
from dissect.etl.etl import ETL


def plain(value):
    if isinstance(value, bytes):
        return str(UUID(bytes_le=value))
    return value if isinstance(value, (int, float, str)) else list(value)


if __name__ == "__main__":
    path, trace = sys.argv[1:]
    names = {"e": "http://schemas.microsoft.com/win/2004/08/events"}
    provider = ElementTree.parse(path).find(".//e:provider", names)
    guid = UUID(provider.attrib["guid"])
    module = manifest.compile_file(guid, path)
    module.c_parser.EtwPointer.as_64bit()
    keywords = {name: keyword.mask for name, keyword in module.KEYWORDS.items()}
    print(json.dumps({"provider": module.PROVIDER_NAME, "keywords": keywords}))
    with open(trace, "rb") as file:
        for record in ETL(file):
            header = getattr(record.header, "header", None)
            if getattr(header, "ProviderId", None) is None:
                continue
            if UUID(bytes_le=bytes(header.ProviderId)) != guid:
                continue
            event = module.EVENTS[header.Id, header.Version]
            payload = record.header.payload
            values = event.template(payload)
            fields = {name: plain(getattr(values, name)) for name in event.template.fields}
            used = len(values.dumps())
            print(json.dumps({"symbol": event.symbol, "fields": fields, "left": len(payload) - used}))
