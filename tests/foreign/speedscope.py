"""Validates a file against a JSON schema, that of speedscope, and prints the stacks of each profile
with their weights, and of profiles of events the time in each stack: SCHEMA FILE."""

import collections
import json
import sys

import fastjsonschema

schema, document = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
fastjsonschema.compile(schema)(document)
frames = [frame["name"] for frame in document["shared"]["frames"]]
profiles = {}
for profile in document["profiles"]:
    if profile["type"] == "evented":
        stack, stacks, now = [], collections.Counter(), profile["startValue"]
        counts = collections.Counter()
        for event in profile["events"]:
            assert now <= event["at"] <= profile["endValue"]
            stacks[";".join(frames[at] for at in stack)] += event["at"] - now
            now = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                counts[";".join(frames[at] for at in stack)] += 1
            else:
                assert stack.pop() == event["frame"]
        assert not stack
        del stacks[""]
        assert profile["name"] not in profiles
        profiles[profile["name"]] = {"unit": profile["unit"], "times": stacks, "counts": counts}
        continue
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    stacks = collections.Counter()
    for stack, weight in zip(profile["samples"], profile["weights"]):
        stacks[";".join(frames[at] for at in stack)] += weight
    assert profile["name"] not in profiles
    profiles[profile["name"]] = {"unit": profile["unit"], "stacks": stacks}
print(json.dumps(profiles))
