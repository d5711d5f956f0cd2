"""Prints the events of event logs (.evtx), one JSON array per file.

An event is its time, numbers, process and thread, activity, and the names and values of its data,
or its payload where Windows could not render it.
"""

import json
import sys
import xml.etree.ElementTree as ET

from evtx import PyEvtxParser

NS = "{http://schemas.microsoft.com/win/2004/08/events/event}"


def number(text):
    return int(text, 16) if text.startswith("0x") else int(text)


def event(record):
    root = ET.fromstring(record["data"])
    system = root.find(NS + "System")
    text = lambda name: system.find(NS + name).text
    execution = system.find(NS + "Execution")
    data = root.find(NS + "EventData")
    payload = root.find(f"{NS}ProcessingErrorData/{NS}EventPayload")
    fields = [] if data is None else data.findall(NS + "Data")
    return {
        "time": system.find(NS + "TimeCreated").get("SystemTime"),
        "numbers": [number(text(n)) for n in ["EventID", "Version", "Level", "Task", "Opcode", "Keywords"]],
        "ids": [int(execution.get(n)) for n in ["ProcessID", "ThreadID", "ProcessorID"]],
        "activity": (system.find(NS + "Correlation").get("ActivityID") or "").lower(),
        "payload": None if payload is None else payload.text,
        "data": [[field.get("Name"), field.text or ""] for field in fields],
    }


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps([event(record) for record in PyEvtxParser(path).records()]))
