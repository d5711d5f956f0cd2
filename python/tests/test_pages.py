"""The code of the pages runs."""

import re

import pytest

from conftest import ROOT

def page(name):
    return (ROOT / "docs" / name).read_text()


def blocks(text, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def test_the_code_of_the_page_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "merged.etl").write_bytes(path.read_bytes())
    (tmp_path / "scenario.kdl").write_bytes((ROOT / "corpus" / "recipe.kdl").read_bytes())
    known = {}
    for block in blocks(page("python.md")):
        exec(compile(block, "python.md", "exec"), known)


def test_the_tests_of_the_page_pass(tmp_path, pytester):
    """Runs the files of docs/cookbook.md for pytest: each block begins with its name."""
    _, section = page("cookbook.md").split("\n## Tests with pytest\n")
    found = blocks(section)
    assert len(found) >= 2
    for block in found:
        name = re.match(r"# (\S+)\n", block).group(1)
        (pytester.path / name).write_text(block)
    (scenario,) = blocks(section, "kdl")
    (pytester.path / "scenario.kdl").write_text(scenario)
    # The first run writes the snapshot, the second compares with it.
    pytester.runpytest("-q", "--update-snapshots").assert_outcomes(passed=2)
    pytester.runpytest("-q").assert_outcomes(passed=2)
    snapshot = next(pytester.path.glob("snapshots/*"))
    snapshot.write_text(snapshot.read_text().replace("\n", "\nother\n", 1))
    pytester.runpytest("-q").assert_outcomes(passed=1, failed=1)
