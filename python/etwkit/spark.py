"""A data source for Spark: ``spark.read.format("etl").load("traces/*.etl")``.

::

    import etwkit.spark
    etwkit.spark.register(spark)
    spark.read.format("etl").option("table", "samples").load("s3://bucket/traces/*.etl")

Each file is one partition and is never split, so that rows are the same however many workers there
are. Paths have to be ones that the workers can open: a shared folder, or an fsspec URL.

Options: ``table`` (default ``events``), ``columns`` (``a,b``: only these), ``member`` (the file of
a ZIP archive), ``storage`` (JSON: the arguments of the file system of fsspec), ``names``
(``false``: without the names of processes and threads), ``pushdown`` (``true``: filters of Spark select what is
decoded; docs/scale.md says when that is safe). Needs pyspark 4.1 or later, and pyarrow.
"""

from __future__ import annotations

import glob
import json
import os
from datetime import datetime, timedelta, timezone

import pyarrow
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

import etwkit

__all__ = ["EtlDataSource", "register"]

_SUFFIXES = (".etl", ".etl.gz", ".etl.zst", ".etl.zip")


def register(spark):
    """Makes ``format("etl")`` known to a session."""
    spark.dataSource.register(EtlDataSource)


class _File(InputPartition):
    def __init__(self, path):
        self.path = path


def _filesystem(path, storage):
    import fsspec

    return fsspec.core.url_to_fs(path, **storage)


def _expand(path, storage):
    """The files of a path, a pattern or a folder, sorted."""
    if "://" in path:
        filesystem, plain = _filesystem(path, storage)
        if any(c in plain for c in "*?["):
            found = filesystem.glob(plain)
        elif filesystem.isdir(plain):
            found = [name for name in filesystem.find(plain) if name.lower().endswith(_SUFFIXES)]
        else:
            found = [plain]
        return sorted(filesystem.unstrip_protocol(name) for name in found)
    if os.path.isdir(path):
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if name.lower().endswith(_SUFFIXES)
        ]
        return sorted(found)
    if glob.has_magic(path):
        return sorted(glob.glob(path, recursive=True))
    return [path]


def _plain(schema):
    """The schema with dictionaries replaced by their values, which Spark does not take."""
    fields = [
        field.with_type(field.type.value_type) if pyarrow.types.is_dictionary(field.type) else field
        for field in schema
    ]
    return pyarrow.schema(fields)


class EtlDataSource(DataSource):
    """Windows event traces (.etl)."""

    @classmethod
    def name(cls):
        return "etl"

    def _paths(self):
        options = self.options
        named = options.get("paths")
        paths = json.loads(named) if named else [options["path"]] if "path" in options else []
        if not paths:
            raise ValueError('name a path: spark.read.format("etl").load("traces/*.etl")')
        storage = json.loads(options.get("storage", "{}"))
        found = [file for path in paths for file in _expand(path, storage)]
        if not found:
            raise FileNotFoundError(f"no trace matches {', '.join(paths)}")
        return found

    def schema(self):
        table = self.options.get("table", "events")
        columns = self.options.get("columns")
        columns = [name.strip() for name in columns.split(",")] if columns else None
        # The tables have their schema without any trace; a typed table has that of the first trace
        # with such events.
        missing = None
        for path in self._paths():
            try:
                with _open(path, self.options) as trace:
                    schema = pyarrow.schema(trace.table(table, columns=columns))
                    return from_arrow_schema(_plain(schema))
            except KeyError as error:
                if table in etwkit.tables():
                    raise
                missing = error
        raise missing

    def reader(self, schema):
        # A reader that takes filters is refused by Spark unless its settings allow them.
        pushes = self.options.get("pushdown", "false").lower() == "true"
        reader = PushingEtlReader if pushes else EtlReader
        return reader(schema, self._paths(), dict(self.options))


def _open(path, options):
    member = options.get("member")
    if "://" in path:
        filesystem, plain = _filesystem(path, json.loads(options.get("storage", "{}")))
        with filesystem.open(plain, "rb") as file:
            return etwkit.open(file, member=member, threads=1)
    return etwkit.open(path, member=member, threads=1)


class EtlReader(DataSourceReader):
    """Reads one file in each partition."""

    def __init__(self, schema, paths, options):
        self.schema = schema
        self.columns = schema.fieldNames()
        self.paths = paths
        self.options = options
        self.table = options.get("table", "events")
        self.selection = {}

    def partitions(self):
        return [_File(path) for path in self.paths]

    def read(self, partition):
        with _open(partition.path, self.options) as trace:
            table = self._table(trace)
            if table is None:
                return  # This trace has no such events.
            for batch in pyarrow.RecordBatchReader.from_stream(table):
                yield self._fit(batch.cast(_plain(batch.schema)))

    def _table(self, trace):
        """The table of a trace with those of the columns that it has; None if it has no rows."""
        names = self.options.get("names", "true").lower() != "false"
        # Batches go through a pipe.
        options = {"names": names, "batch_rows": 1 << 14, **self.selection}
        try:
            return trace.table(self.table, columns=self.columns, **options)
        except KeyError:
            if self.table in etwkit.tables():
                raise
        try:
            table = trace.table(self.table, **options)
        except KeyError:
            return None
        # The versions of an event that are in one trace may have other fields than those in another.
        columns = [name for name in self.columns if name in table.columns]
        return trace.table(self.table, columns=columns, **options) if columns else table

    def _fit(self, batch):
        """A batch with the columns and types of the schema; a column that it lacks is null."""
        own = {field.name: field.dataType for field in from_arrow_schema(batch.schema).fields}
        wanted = {field.name: field.dataType for field in self.schema.fields}
        if list(own.items()) == list(wanted.items()):
            return batch
        arrays = []
        for name, kind in wanted.items():
            if name not in own:
                array = pyarrow.nulls(batch.num_rows, to_arrow_type(kind))
            else:
                array = batch.column(name)
                array = array if own[name] == kind else array.cast(to_arrow_type(kind))
            arrays.append(array)
        return pyarrow.RecordBatch.from_arrays(arrays, names=list(wanted))


class PushingEtlReader(EtlReader):
    """Takes the filters that select what is decoded."""

    def pushFilters(self, filters):
        """Takes the filters that select what is decoded; returns those that Spark applies.

        A filter whose meaning is not exactly that of the column is applied by Spark as well.
        """
        for filter in filters:
            # Only the table of events, and those of kinds of events, have rows that are events.
            if self.table in etwkit.tables() and self.table != "events" or not self._push(filter):
                yield filter

    def _push(self, filter):
        column = ".".join(getattr(filter, "attribute", ()))
        if isinstance(filter, (EqualTo, In)):
            values = [filter.value] if isinstance(filter, EqualTo) else list(filter.value)
            if column == "id" and all(_is_int(v) and 0 <= v < 1 << 16 for v in values):
                return self._narrow("id", values)
            if column == "event" and all(_is_plain(value) for value in values):
                return self._narrow("event", values, exact=False)
            if column == "provider_guid" and all(_is_plain(value) for value in values):
                return self._narrow("provider", values, exact=False)
        if column == "time" and isinstance(getattr(filter, "value", None), datetime):
            if isinstance(filter, (GreaterThan, GreaterThanOrEqual)):
                self._bound("start", filter.value, max)
            elif isinstance(filter, (LessThan, LessThanOrEqual)):
                # The end is not selected: Spark decides about the last microsecond.
                self._bound("end", _after(filter.value), min)
        return False

    def _narrow(self, name, values, exact=True):
        if name in self.selection or not values:
            return False
        self.selection[name] = values
        return exact

    def _bound(self, name, value, choose):
        # Without a time zone it is one of this machine, as everywhere in Spark.
        value = value.astimezone(timezone.utc)
        known = self.selection.get(name)
        self.selection[name] = choose(known, value) if known else value


def _after(time):
    return time + timedelta(microseconds=1)


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_plain(value):
    """Whether a text is no pattern."""
    return isinstance(value, str) and not any(c in value for c in "*?")
