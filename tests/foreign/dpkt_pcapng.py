"""Reads pcapng files with dpkt and prints, for each, its packets: microseconds since 1970, and bytes
in hexadecimal digits."""

import json
import sys

import dpkt

for path in sys.argv[1:]:
    with open(path, "rb") as file:
        packets = [(round(time * 1e6), bytes.hex()) for time, bytes in dpkt.pcapng.Reader(file)]
    print(json.dumps(packets))
