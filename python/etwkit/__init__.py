"""Windows event traces (``.etl`` files of ETW) on any OS: events, tables, verification, simulation.

::

    import etwkit

    with etwkit.open("merged.etl") as trace:
        print(trace.info()["records"], trace.verify()["verdict"])
        for event in trace.events(provider="Microsoft-Windows-DotNETRuntime", event="GCStart*"):
            print(event.time, event.process, event.fields["Count"])

A trace and each of its tables are Arrow streams, which DuckDB, Polars, pandas and pyarrow take as
they are::

    polars.DataFrame(trace.table("gcs"))
    duckdb.sql("select provider, count(*) from trace group by 1")
"""

from ._native import (
    Event,
    Events,
    Table,
    Trace,
    TraceError,
    __version__,
    open,
    synth,
    tables,
)


def info(source, **options):
    """The report of ``etlkit info`` on a trace as a dict; see :meth:`Trace.info`."""
    with open(source) as trace:
        return trace.info(**options)


def verify(source, **options):
    """The report of ``etlkit verify`` on traces as a dict; see :meth:`Trace.verify`."""
    with open(source) as trace:
        return trace.verify(**options)


__all__ = [
    "Event",
    "Events",
    "Table",
    "Trace",
    "TraceError",
    "__version__",
    "info",
    "open",
    "synth",
    "tables",
    "verify",
]
