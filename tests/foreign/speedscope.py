"""Validates a file against a JSON schema, that of speedscope, and prints the stacks of each profile
with their weights: SCHEMA FILE."""

import collections
import json
import sys

import fastjsonschema

schema, document = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
fastjsonschema.compile(schema)(document)
frames = [frame["name"] for frame in document["shared"]["frames"]]
profiles = {}
for profile in document["profiles"]:
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    stacks = collections.Counter()
    for stack, weight in zip(profile["samples"], profile["weights"]):
        stacks[";".join(frames[at] for at in stack)] += weight
    assert profile["name"] not in profiles
    profiles[profile["name"]] = {"unit": profile["unit"], "stacks": stacks}
print(json.dumps(profiles))
