"""EventPipe streams (`.nettrace`) are opened as traces."""

import gzip
import io
import json

import pytest
from conftest import SHARED

import etwkit

STREAM = SHARED / "nettrace" / "8.0-8-4.nettrace.gz"

pytestmark = pytest.mark.skipif(not STREAM.exists(), reason=f"{STREAM} is missing")


def events(source):
    with etwkit.open(source) as trace:
        return [event.json() for event in trace.events()]


def test_every_kind_of_input_has_the_events_of_the_stream(tmp_path):
    data = gzip.decompress(STREAM.read_bytes())
    expected = events(STREAM)
    manifest = json.loads((STREAM.parent / "manifest.json").read_text())
    [row] = [row for row in manifest if row["file"] == STREAM.name]
    # The trace that a stream becomes begins with a header event.
    assert len(expected) == 1 + row["events"]
    unpacked = tmp_path / "app.nettrace"
    unpacked.write_bytes(data)
    for source in [unpacked, str(unpacked), data, bytearray(data), io.BytesIO(data)]:
        assert events(source) == expected


def test_info_has_the_conversion_of_the_stream():
    stream = etwkit.info(STREAM)["stream"]
    assert stream["version"] == 4
    assert stream["is_complete"] and stream["cut_offset"] is None


def test_a_cut_stream_has_the_events_before_the_cut():
    data = gzip.decompress(STREAM.read_bytes())
    whole = events(data)
    cut = data[: len(data) // 2]
    found = events(cut)
    assert 0 < len(found) < len(whole)
    with etwkit.open(cut) as trace:
        assert trace.info()["stream"]["cut_offset"] == len(cut)
        report = trace.verify()
    assert report["origin"] == "event_pipe"
    assert "file.unclosed" in [finding["rule"] for finding in report["findings"]]
