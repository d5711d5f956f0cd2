"""Tables are Arrow streams that other libraries take as they are."""

import json

import pytest

import etwkit

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")


def test_the_events_are_those_of_the_iterator(trace):
    frame = polars.DataFrame(trace)
    events = list(trace.events(names=True))
    assert frame.height == len(events)
    assert frame["filetime"].to_list() == [event.filetime for event in events]
    assert frame["event"].to_list() == [event.name for event in events]
    assert frame["provider"].to_list() == [event.provider for event in events]
    assert frame["process"].to_list() == [event.process for event in events]
    for text, event in zip(frame["fields"].to_list(), events):
        assert (json.loads(text) if text else {}) == event.to_dict().get("fields", {})


def test_duckdb_counts_what_info_counts(trace):
    counted = duckdb.sql("select provider_guid, count(*) from trace group by 1").fetchall()
    assert dict(counted) == {p["provider_guid"]: p["count"] for p in trace.info()["providers"]}
    # The stream can be read again.
    assert duckdb.sql("select count(*) from trace").fetchall() == [(trace.info()["records"],)]


def test_columns_and_rows_are_selected(trace):
    table = trace.table(columns=["time", "event"], event="Method*", batch_rows=10)
    assert table.columns == ["time", "event"]
    frame = polars.DataFrame(table)
    assert frame["event"].to_list() == [e.name for e in trace.events(event="Method*")]


def test_every_table_is_read(trace):
    for name in etwkit.tables():
        frame = polars.DataFrame(trace.table(name))
        assert frame.columns == trace.table(name).columns, name
    rows = polars.DataFrame(trace.table("processes"))
    assert rows.height == len(trace.info()["process_counts"]) or rows.height > 0


def test_a_typed_table_has_the_fields(trace):
    frame = polars.DataFrame(trace.table("Microsoft-Windows-DotNETRuntime.MethodLoadVerbose_V1"))
    events = list(trace.events(event="MethodLoadVerbose_V1"))
    assert events and frame["MethodName"].to_list() == [e.fields["MethodName"] for e in events]


def test_several_traces_are_one_table(made):
    paths = [path for path in made if path.suffix == ".etl"] * 2
    with etwkit.open(paths) as trace:
        rows = duckdb.sql("select trace, count(*) n from trace group by 1").fetchall()
    assert sum(n for _, n in rows) % 2 == 0 and {name for name, _ in rows} == set(map(str, paths))


def test_wrong_names_are_key_errors(trace):
    for wrong in [{"name": "no_such"}, {"columns": ["no_such"]}, {"name": "No.Such"}]:
        with pytest.raises(KeyError, match="[Nn]o_such|No.Such"):
            trace.table(**wrong)


def test_tables_without_events_refuse_what_selects_events(trace):
    for name in etwkit.tables().keys() - {"events"}:
        for wrong in [
            {"provider": "PerfInfo"},
            {"event": "Method*"},
            {"id": 141},
            {"level": 4},
            {"keyword": 0x10},
        ]:
            with pytest.raises(ValueError, match=f"{[*wrong][0]}: the rows of the table {name}"):
                trace.table(name, **wrong)
    selected = trace.table("Microsoft-Windows-DotNETRuntime.MethodLoadVerbose_V1", id=143)
    assert polars.DataFrame(selected).height > 0


def test_pandas_and_pyarrow_take_a_table(trace):
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    table = pyarrow.table(trace.table("processes"))
    assert pyarrow.schema(trace.table("processes")) == table.schema
    assert len(pandas.DataFrame.from_arrow(trace.table("processes"))) == table.num_rows
