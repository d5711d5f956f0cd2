"""Reads frames with dpkt and prints one JSON object per file.

A file has a frame in hexadecimal digits in each line. dpkt computes every checksum again.
"""

import json
import socket
import sys

import dpkt


def again(packet):
    """The packet as dpkt writes it when it computes its checksums."""
    copy = type(packet)(bytes(packet))
    copy.data.sum = 0
    if isinstance(copy, dpkt.ip.IP):
        copy.sum = 0
    return bytes(copy)


def address(raw):
    return socket.inet_ntop(socket.AF_INET6 if len(raw) == 16 else socket.AF_INET, raw)


def flags(tcp):
    names = [(dpkt.tcp.TH_SYN, "S"), (dpkt.tcp.TH_FIN, "F"), (dpkt.tcp.TH_PUSH, "P"), (dpkt.tcp.TH_ACK, "A")]
    return "".join(name for bit, name in names if tcp.flags & bit)


def summary(frames):
    wrong, connections, messages = [], {}, []
    for number, raw in enumerate(frames):
        packet = dpkt.ethernet.Ethernet(raw).data
        if not isinstance(packet, (dpkt.ip.IP, dpkt.ip6.IP6)):
            wrong.append([number, "no IP packet"])
            continue
        if bytes(packet) != raw[14:]:
            wrong.append([number, "a length"])
        if again(packet) != raw[14:]:
            wrong.append([number, "a checksum"])
        segment = packet.data
        ends = ((packet.src, segment.sport), (packet.dst, segment.dport))
        if isinstance(segment, dpkt.udp.UDP):
            message = dpkt.dns.DNS(segment.data)
            kind = "response" if message.qr else "query"
            answers = [address(a.rdata) for a in message.an]
            messages.append([kind, message.id, message.qd[0].name, message.qd[0].type, message.rcode, answers])
            continue
        key = min(ends), max(ends)
        found = connections.setdefault(key, {"from": ends[0], "flags": [], "next": {}, "bytes": [0, 0]})
        sent = ends[0] == found["from"]
        found["flags"].append((">" if sent else "<") + flags(segment))
        expected = found["next"].get(sent)
        if expected is not None and segment.seq != expected:
            wrong.append([number, "a sequence number"])
        if segment.flags & dpkt.tcp.TH_ACK and segment.ack != found["next"].get(not sent):
            wrong.append([number, "an acknowledgement"])
        counted = len(segment.data) + bool(segment.flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_FIN))
        found["next"][sent] = (segment.seq + counted) % 2**32
        found["bytes"][0 if sent else 1] += len(segment.data)
    listed = [
        {"to": f"{address(key[0][0] if key[1] == c['from'] else key[1][0])}",
         "flags": c["flags"], "bytes": c["bytes"]}
        for key, c in connections.items()
    ]
    return {"frames": len(frames), "wrong": wrong, "connections": listed, "messages": messages}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="ascii") as file:
            print(json.dumps(summary([bytes.fromhex(line) for line in file])))
