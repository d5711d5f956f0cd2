"""Reads traces with Perfetto's bindings and prints one JSON object for each: clocks, the kernel's
events with their fields, identities of mappings, and what is interned only after it is used."""

import collections
import json
import sys

from google.protobuf.json_format import MessageToDict
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

for path in sys.argv[1:]:
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    known = collections.defaultdict(set)
    found = {"clocks": [], "etw": [], "mappings": {}, "late": [], "modes": collections.Counter(),
             "processes": [], "frames": collections.Counter(), "unknown": 0, "states": []}
    paths, builds = {}, {}
    for at, packet in enumerate(trace.packet):
        found["unknown"] += packet.trusted_packet_sequence_id != 1
        if packet.sequence_flags & 1:
            found["states"].append(at)
        interned = packet.interned_data
        for kind in ("function_names", "frames", "callstacks", "mappings", "mapping_paths", "build_ids"):
            known[kind].update(entry.iid for entry in getattr(interned, kind))
        paths.update((entry.iid, entry.str.decode()) for entry in interned.mapping_paths)
        builds.update((entry.iid, entry.str.hex()) for entry in interned.build_ids)
        for frame in interned.frames:
            found["frames"][frame.Kind.Name(frame.kind)] += 1
            if frame.function_name_id not in known["function_names"] or frame.mapping_id not in known["mappings"]:
                found["late"].append(at)
        for stack in interned.callstacks:
            if any(frame not in known["frames"] for frame in stack.frame_ids):
                found["late"].append(at)
        for mapping in interned.mappings:
            name = "/".join(paths[part] for part in mapping.path_string_ids)
            found["mappings"][f"{name}@{mapping.start:#x}"] = [mapping.end, builds[mapping.build_id]]
        if packet.HasField("clock_snapshot"):
            found["clocks"].append({clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks})
        if packet.HasField("perf_sample"):
            sample = packet.perf_sample
            found["modes"][sample.cpu_mode] += 1
            if sample.callstack_iid not in known["callstacks"]:
                found["late"].append(at)
        for event in packet.etw_events.event:
            kind = event.WhichOneof("event")
            fields = getattr(event, kind)
            values = {field.name: value for field, value in fields.ListFields()}
            found["etw"].append([kind, event.timestamp, event.cpu, event.thread_id, values])
        for process in packet.process_tree.processes:
            found["processes"].append([process.pid, process.ppid, list(process.cmdline)])
    print(json.dumps(found))
