"""Simulations are those of the command line."""

from pathlib import Path

import pytest

import etwkit

from conftest import ROOT

SCRIPT = ROOT / "corpus" / "gc-and-locks.kdl"


def test_synth_writes_what_the_command_line_writes(tmp_path, cli):
    made = [Path(path) for path in etwkit.synth(SCRIPT, tmp_path / "a", seed=5)]
    cli("synth", SCRIPT, "-o", tmp_path / "b", "--seed", 5)
    other = sorted(path.name for path in (tmp_path / "b").iterdir())
    assert sorted(path.name for path in made) == other
    for path in made:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_synth_replaces_files_on_request_only(tmp_path):
    first = etwkit.synth(SCRIPT, tmp_path, truth=False)
    with pytest.raises(FileExistsError):
        etwkit.synth(SCRIPT, tmp_path)
    assert set(first) < set(etwkit.synth(SCRIPT, tmp_path, force=True))


def test_errors_of_a_script_name_their_line(tmp_path):
    script = tmp_path / "wrong.kdl"
    script.write_text('process "a.exe" {\n  no-such-thing 1\n}\n')
    with pytest.raises(etwkit.TraceError, match="no-such-thing") as caught:
        etwkit.synth(script, tmp_path / "out")
    assert caught.value.file == str(script)
    with pytest.raises(FileNotFoundError):
        etwkit.synth(tmp_path / "none.kdl", tmp_path)
