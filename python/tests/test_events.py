"""Events are those of the command line, and of the truth of a simulation."""

import json
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

import etwkit


def dumped(cli, path, *args):
    lines = cli("dump", "--format", "jsonl", *args, path).splitlines()
    return [json.loads(line) for line in lines]


def test_events_are_those_of_the_command_line(real, cli):
    with etwkit.open(real) as trace:
        assert [e.to_dict() for e in trace.events()] == dumped(cli, real, "--no-names")


def test_events_with_names_are_those_of_the_command_line(real, cli):
    with etwkit.open(real) as trace:
        assert [e.to_dict() for e in trace.events(names=True)] == dumped(cli, real)


def test_attributes_are_those_of_the_json(real):
    with etwkit.open(real) as trace:
        for event in trace.events(names=True):
            shown = event.to_dict()
            assert event.name == shown["event"]
            assert event.cpu == shown["cpu"]
            assert event.kind == shown["kind"]
            assert event.timestamp == shown["timestamp"]
            for name in ["pid", "tid", "id", "version", "opcode", "level", "task"]:
                assert getattr(event, name) == shown.get(name), name
            for name in ["provider_guid", "message"]:
                assert getattr(event, name) == shown.get(name), name
            assert event.provider == shown.get("provider", shown.get("provider_guid"))
            assert event.process == shown.get("process")
            assert event.thread == shown.get("thread")
            # FILETIME has a digit more.
            time = datetime.strptime(shown["time"][:-2] + "Z", "%Y-%m-%dT%H:%M:%S.%f%z")
            assert event.time == time
            assert event.filetime % 10 == int(shown["time"][-2])
            assert (event.time - datetime(1601, 1, 1, tzinfo=timezone.utc)) == timedelta(
                microseconds=event.filetime // 10
            )


def plain(value):
    """A value of `fields` as JSON has it; numbers that JSON shows in hexadecimal are compared as
    numbers."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def same(value, shown):
    if isinstance(value, int) and isinstance(shown, str) and shown.startswith("0x"):
        return value & (1 << 64) - 1 == int(shown, 16) or value & (1 << 32) - 1 == int(shown, 16)
    if isinstance(value, list):
        return len(value) == len(shown) and all(map(same, value, shown))
    if isinstance(value, dict):
        return all(same(item, shown[name]) for name, item in value.items())
    return value == shown or isinstance(value, float) and str(value) == str(shown)


def test_fields_are_those_of_the_json(real):
    with etwkit.open(real) as trace:
        for event in trace.events():
            shown = event.to_dict().get("fields", {})
            for name, value in event.fields.items():
                # Some bytes are shown as a network address.
                if isinstance(value, bytes) and shown[name] != value.hex():
                    continue
                assert same(plain(value), shown[name]), (event, name, value, shown[name])


def test_events_are_those_that_the_simulation_recorded(path, truth):
    """Compares with the truth, which the reader has no part in."""
    recorded = Counter()
    for line in truth:
        if line["kind"] == "event" and line["record_format"] == "event":
            if "recorded" in line["sessions"].values():
                recorded[line["provider_guid"], line["id"], line["event"]] += 1
    with etwkit.open(path) as trace:
        read = Counter((e.provider_guid, e.id, e.name) for e in trace.events())
    assert recorded
    for event, count in recorded.items():
        assert read[event] >= count, event


def test_events_are_selected_as_by_the_command_line(path, cli):
    runtime = "Microsoft-Windows-DotNETRuntime"
    with etwkit.open(path) as trace:
        first = next(iter(trace.events(provider=runtime)))
        middle = trace.info()["duration_seconds"] / 2
        for selected, args in [
            ({"provider": runtime}, ["-p", runtime]),
            ({"provider": [runtime, "PerfInfo"]}, ["-p", runtime, "-p", "PerfInfo"]),
            ({"event": "Method*"}, ["--event", "Method*"]),
            ({"event": ["Method*", "GC*"]}, ["--event", "Method*", "--event", "GC*"]),
            ({"id": 141}, ["--id", "141"]),
            ({"id": [141, 143], "level": 4}, ["--id", "141", "--id", "143", "--level", "4"]),
            ({"keyword": 0x10}, ["--keyword", "0x10"]),
            ({"process": first.pid}, ["--pid", str(first.pid)]),
            ({"start": middle}, ["--from", str(middle)]),
            ({"end": middle}, ["--to", str(middle)]),
            ({"where": "ProcessID > 4"}, ["--where", "ProcessID > 4"]),
            ({"grep": "System"}, ["--grep", "System"]),
        ]:
            count = sum(1 for _ in trace.events(**selected))
            assert count == int(cli("dump", "--count", *args, path)), selected
        half = trace.info()["first_event_time"]
        since = datetime.fromisoformat(half[:26] + "+00:00") + timedelta(seconds=middle)
        assert sum(1 for _ in trace.events(start=since)) > 0


def test_wrong_selections_are_refused(trace):
    for wrong in [
        {"where": "no condition"},
        {"start": "yesterday"},
        {"id": "GCStart"},
        {"id": 1 << 16},
        {"order": "any"},
        {"provider": []},
    ]:
        with pytest.raises((ValueError, TypeError, OverflowError)):
            trace.events(**wrong)
    with pytest.raises(etwkit.TraceError, match="no process"):
        trace.events(process="no-such.exe")
    with pytest.warns(UserWarning, match="No-Such-Provider"):
        assert list(trace.events(provider="No-Such-Provider")) == []


def test_events_outlive_their_trace(path):
    with etwkit.open(path) as trace:
        events = list(trace.events())
        shown = [event.json() for event in events]
    with pytest.raises(ValueError, match="closed"):
        trace.info()
    assert [event.json() for event in events] == shown
    assert all(isinstance(event.fields, dict) for event in events[:100])


def test_several_traces_are_read_in_time_order(made, cli):
    paths = [path for path in made if path.suffix == ".etl"] * 2
    with etwkit.open(paths) as trace:
        times = [event.filetime for event in trace.events()]
        assert times == sorted(times)
    with etwkit.open(paths[0]) as trace:
        assert len(times) == len(paths) * sum(1 for _ in trace.events()) or len(set(paths)) > 1


# Two sessions on one machine; only the first one's trace has the process.
TWO_SESSIONS = """
process "App.exe" { clr "core" version="6.0.100"; every "50ms" from="1.1s" until="3s" { throw 1 } }
at "1s" { session "kernel" file="a.etl" { kernel "processes threads images" } }
at "1.5s" { session "s" file="b.etl" { enable "runtime" keywords=0x8019 level=5 } }
at "3s" { stop "s"; stop "kernel" }
"""


def filetime(text):
    """A time of a report in units of 100 ns."""
    since = datetime.fromisoformat(text[:19] + "+00:00") - datetime(1601, 1, 1, tzinfo=timezone.utc)
    return since // timedelta(seconds=1) * 10**7 + int(text[20:27])


def with_time(trace, name, change):
    """The bytes of a trace whose header states another time."""
    with etwkit.open(trace) as opened:
        time = filetime(opened.info()[name])
    before, after = (time.to_bytes(8, "little", signed=True) for time in (time, change(time)))
    assert before in trace
    return trace.replace(before, after)


def test_traces_of_one_machine_are_read_as_the_command_line_does(tmp_path, cli):
    (tmp_path / "two.kdl").write_text(TWO_SESSIONS)
    etwkit.synth(tmp_path / "two.kdl", tmp_path)
    first, second = tmp_path / "a.etl", tmp_path / "b.etl"
    # The time of day was set between the starts, and boot times are inexact.
    changed = with_time(second.read_bytes(), "start_time", lambda time: time + 3_000_000)
    second.write_bytes(with_time(changed, "boot_time", lambda time: time + 3_000_000))
    for paths in [first, second], [second, first]:
        merged = cli("dump", "--merge", "--format", "jsonl", *paths)
        expected = [json.loads(line) for line in merged.splitlines()]
        named = {event.pop("file") for event in expected if "process" in event}
        assert named == {str(first), str(second)}
        for event in expected:
            event.pop("file", None)
        with etwkit.open(paths) as trace:
            assert [e.to_dict() for e in trace.events(names=True)] == expected
            late = sum(1 for _ in trace.events(start=1))
        assert late == int(cli("dump", "--merge", "--count", "--from", "1", *paths))


def test_times_that_python_does_not_have_are_none(path):
    with etwkit.open(path) as trace:
        years = {event.time.year for event in trace.events()}
    assert len(years) == 1
    for start in 1 << 62, -(1 << 60):
        with etwkit.open(with_time(path.read_bytes(), "start_time", lambda _: start)) as trace:
            events = list(trace.events())
            assert events and all(event.time is None for event in events)
            assert all(abs(event.filetime - start) < 10**10 for event in events)
            assert all(repr(event).startswith("<Event ") for event in events)
