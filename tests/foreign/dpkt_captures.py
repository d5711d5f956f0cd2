"""Writes frames as captures with dpkt: FRAMES PCAP PCAPNG.

A line of FRAMES has a time in seconds and a frame in hexadecimal digits.
"""

import json
import sys

import dpkt

if __name__ == "__main__":
    source, *captures = sys.argv[1:]
    with open(source, encoding="ascii") as file:
        frames = [(float(time), bytes.fromhex(frame)) for time, frame in map(str.split, file)]
    for path, writer in zip(captures, (dpkt.pcap.Writer, dpkt.pcapng.Writer)):
        with open(path, "wb") as file:
            output = writer(file)
            for time, frame in frames:
                output.writepkt(frame, time)
    print(json.dumps(len(frames)))
