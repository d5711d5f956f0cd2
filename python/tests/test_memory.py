"""A trace that needs more memory than is allowed is refused."""

import io

import pytest

import etwkit

polars = pytest.importorskip("polars")

USES = {
    "info": lambda trace: trace.info(),
    "verify": lambda trace: trace.verify(),
    "events": lambda trace: list(trace.events()),
    "names": lambda trace: list(trace.events(names=True)),
    "table": lambda trace: polars.DataFrame(trace.table("processes")),
}


LIMIT = 64 << 20


def hold(path):
    """Traces in memory, which take more than LIMIT."""
    data = path.read_bytes()
    return [etwkit.open(io.BytesIO(data)) for _ in range(1 + LIMIT // len(data))]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_trace_is_refused_that_needs_more_memory(path, use):
    with etwkit.open(path, max_memory=LIMIT) as trace:
        use(trace)
        held = hold(path)
        with pytest.raises((etwkit.TraceError, polars.exceptions.PolarsError), match="memory budget"):
            use(trace)
        del held
        use(trace)


def test_the_error_says_how_to_allow_more(path):
    with pytest.raises(etwkit.TraceError) as caught:
        etwkit.open(path, max_memory=1 << 12)
    assert caught.value.file == str(path) and "max_memory=" in caught.value.hint
