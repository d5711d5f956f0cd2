"""Counts the records of traces with etl-parser and prints one JSON object per trace.

etl-parser skips buffer 0 and does not decompress; the caller has to allow for both.
"""

import collections
import json
import sys

from etl.etl import IEtlFileObserver, build_from_stream


class Counter(IEtlFileObserver):
    def __init__(self):
        self.kinds = collections.Counter()

    def on_event_record(self, event):
        self.kinds["EVENT"] += 1

    def on_trace_record(self, event):
        self.kinds["FULL"] += 1

    def on_perfinfo_trace(self, obj):
        self.kinds["PERFINFO"] += 1

    def on_system_trace(self, obj):
        self.kinds["SYSTEM"] += 1

    def on_win_trace(self, obj):
        self.kinds["WIN"] += 1


if __name__ == "__main__":
    for path in sys.argv[1:]:
        try:
            counter = Counter()
            with open(path, "rb") as file:
                build_from_stream(file.read()).parse(counter)
            result = {"path": path, "kinds": counter.kinds, "records": sum(counter.kinds.values())}
        except Exception as error:  # reported in the output
            result = {"path": path, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
