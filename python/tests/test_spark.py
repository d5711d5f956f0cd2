"""The data source for Spark, with stand-ins for Spark itself, which is large."""

import sys
import types
from collections import namedtuple

import pyarrow
import pytest

Field = namedtuple("Field", "name dataType")


class Schema:
    def __init__(self, arrow):
        self.fields = [Field(field.name, field.type) for field in arrow]

    def fieldNames(self):
        return [field.name for field in self.fields]


class Trace:
    """A trace with one kind of events, or none."""

    def __init__(self, table):
        self.rows = table

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def table(self, name, columns=None, names=True, batch_rows=0):
        if self.rows is None:
            raise KeyError(f"the trace has no event `{name}`")
        missing = set(columns or []) - set(self.rows.column_names)
        if missing:
            raise KeyError(f"table `{name}` has no column {missing}")
        rows = self.rows.select(columns) if columns else self.rows
        return Stream(rows)


class Stream:
    def __init__(self, rows):
        self.rows, self.columns = rows, rows.column_names

    def __arrow_c_stream__(self, requested_schema=None):
        return self.rows.__arrow_c_stream__(requested_schema)


@pytest.fixture
def spark(monkeypatch):
    """The module, as it would be with Spark."""
    names = ["DataSource", "DataSourceReader", "EqualTo", "GreaterThan", "GreaterThanOrEqual"]
    names += ["In", "InputPartition", "LessThan", "LessThanOrEqual"]
    modules = {name: types.ModuleType(name) for name in ("pyspark", "pyspark.sql")}
    source = modules["pyspark.sql.datasource"] = types.ModuleType("datasource")
    for name in names:
        setattr(source, name, type(name, (), {}))
    modules["pyspark.sql.pandas"] = types.ModuleType("pandas")
    kinds = modules["pyspark.sql.pandas.types"] = types.ModuleType("types")
    kinds.from_arrow_schema, kinds.to_arrow_type = Schema, lambda kind: kind
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "etwkit.spark", raising=False)
    import etwkit.spark

    yield etwkit.spark
    sys.modules.pop("etwkit.spark", None)


def test_columns_that_a_trace_lacks_are_null(spark, monkeypatch):
    traces = {
        "new": Trace(pyarrow.table({"id": [1], "size": pyarrow.array([7], pyarrow.int64())})),
        "old": Trace(pyarrow.table({"id": [2, 3]})),
        "narrow": Trace(pyarrow.table({"id": [4], "size": pyarrow.array([8], pyarrow.int32())})),
        "other": Trace(pyarrow.table({"else": [5]})),
        "none": Trace(None),
    }
    monkeypatch.setattr(spark, "_open", lambda path, options: traces[path])
    schema = Schema(traces["new"].rows.schema)
    reader = spark.EtlReader(schema, list(traces), {"table": "Provider.Event"})
    rows = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            assert Schema(batch.schema).fields == schema.fields
            rows += batch.to_pylist()
    expected = [(1, 7), (2, None), (3, None), (4, 8), (None, None)]
    assert [(row["id"], row["size"]) for row in rows] == expected


def test_columns_that_no_table_has_are_an_error(spark, monkeypatch):
    trace = Trace(pyarrow.table({"id": [1]}))
    monkeypatch.setattr(spark, "_open", lambda path, options: trace)
    schema = Schema(pyarrow.schema([("size", pyarrow.int64())]))
    reader = spark.EtlReader(schema, ["trace"], {"table": "events"})
    with pytest.raises(KeyError):
        list(reader.read(reader.partitions()[0]))
