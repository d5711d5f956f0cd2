"""What can be opened, and what is refused."""

import gzip
import io
import random
import zipfile

import pytest

import etwkit


def summary(source, **options):
    with etwkit.open(source, **options) as trace:
        report = trace.info()
        del report["file"]
        return report, [event.json() for event in trace.events()]


def test_every_kind_of_input_has_the_same_events(path, tmp_path):
    data = path.read_bytes()
    expected = summary(path)
    assert summary(str(path)) == expected
    assert summary(path, mmap=False) == expected
    assert summary(path, threads=2) == expected
    assert summary(data) == expected
    assert summary(bytearray(data)) == expected
    assert summary(memoryview(data)) == expected
    assert summary(io.BytesIO(data)) == expected
    assert summary(gzip.compress(data)) == expected
    with path.open("rb") as file:
        assert summary(file) == expected
    packed = tmp_path / "trace.etl.gz"
    packed.write_bytes(gzip.compress(data))
    assert summary(packed) == expected
    archive = tmp_path / "trace.etl.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.write(path, "a/trace.etl")
        out.writestr("readme.txt", "text")
    assert summary(archive) == expected
    assert summary(archive, member="trace.etl") == expected


def test_a_choice_is_needed_where_an_archive_has_several_traces(path, tmp_path):
    archive = tmp_path / "traces.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.write(path, "a.etl")
        out.write(path, "b.etl")
    with pytest.raises(etwkit.TraceError, match="2 traces") as caught:
        etwkit.open(archive)
    assert "member=NAME" in caught.value.hint and "a.etl" in caught.value.hint
    assert summary(archive, member="b.etl") == summary(path)


def test_errors_name_the_file_and_the_next_step(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        etwkit.open(tmp_path / "no.etl")
    assert missing.value.filename == str(tmp_path / "no.etl")
    for content, message in [
        (b"", "empty"),
        (b"ElfFile\0" + bytes(600), "evtx"),
        (b"text\n" * 100, "text"),
        (bytes(range(256)) * 16, "not"),
        (gzip.compress(b"text" * 300), "text"),
    ]:
        file = tmp_path / "wrong.etl"
        file.write_bytes(content)
        with pytest.raises(etwkit.TraceError, match=message) as caught:
            etwkit.open(file)
        assert caught.value.file == str(file)
        assert caught.value.hint
    with pytest.raises(etwkit.TraceError, match="directory"):
        etwkit.open(tmp_path)
    for wrong in [1, None, [], [1]]:
        with pytest.raises((TypeError, ValueError)):
            etwkit.open(wrong)
    with pytest.raises(etwkit.TraceError, match="binary mode"):
        etwkit.open(io.StringIO("text"))


def test_damaged_traces_are_read_or_refused(path):
    """Whatever the bytes, there is a result or an exception of this package."""
    data = path.read_bytes()
    chance = random.Random(7)
    for _ in range(60):
        broken = bytearray(data[: chance.randrange(1, len(data))])
        for _ in range(chance.randrange(1, 30)):
            broken[chance.randrange(len(broken))] = chance.choice([0, 1, 127, 255])
        try:
            with etwkit.open(bytes(broken)) as trace:
                for event in trace.events():
                    event.fields, event.json(), event.stack, event.time, event.message
                trace.info()
        except (etwkit.TraceError, OverflowError):
            pass


def test_an_exception_of_a_file_object_is_reported():
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise RuntimeError("the connection is lost")

    with pytest.raises(etwkit.TraceError, match="the connection is lost"):
        etwkit.open(Broken())
