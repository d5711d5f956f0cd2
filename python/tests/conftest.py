"""What the tests share: the command line to compare with, and traces."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import etwkit

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("ETLKIT_SHARED", ROOT.parent / "shared")) / "traces"
ETLKIT = Path(os.environ.get("ETLKIT", ROOT / "target" / "debug" / "etlkit"))

# Small ones of every origin, compressed and not.
REAL = sorted(p for p in SHARED.glob("*/*.etl") if p.stat().st_size < 1 << 20)


@pytest.fixture(scope="session")
def cli():
    """Runs the command line; returns what it prints."""

    def run(*args):
        done = subprocess.run([ETLKIT, *map(str, args)], capture_output=True)
        assert done.returncode < 2, done.stderr.decode()
        return done.stdout.decode()

    if not ETLKIT.exists():
        pytest.skip(f"{ETLKIT} is not built")
    return run


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The traces of a scenario of the corpus."""
    out = tmp_path_factory.mktemp("made")
    return [Path(path) for path in etwkit.synth(ROOT / "corpus" / "recipe.kdl", out)]


@pytest.fixture(scope="session")
def path(made):
    """A trace."""
    return next(path for path in made if path.suffix == ".etl")


@pytest.fixture
def trace(path):
    with etwkit.open(path) as trace:
        yield trace


@pytest.fixture(scope="session")
def truth(made):
    lines = next(p for p in made if p.name == "truth.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(params=REAL, ids=lambda path: path.name)
def real(request):
    return request.param
