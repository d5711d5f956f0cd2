"""Compares what Spark reads from traces by etwkit with DuckDB over the Parquet of the same traces.

Called by python/spark.sh with the folder that has `traces` and `dataset`. Uses no network beyond
this machine.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import etwkit.spark

WORK = Path(sys.argv[1])
TRACES = sorted((WORK / "traces").glob("*/*/*.etl"))

# What is asked of the largest table; all rows of the others are compared, with all columns.
EVENTS = """select provider, event, count(*), sum(filetime % 1000003), min(time), max(time),
sum(length(fields)) from T group by provider, event"""
TABLES = ["gcs", "processes", "samples", "findings"]


def named(path):
    """The name that a data set gives to the trace of a path."""
    return f"{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"


NAMES = {str(path): named(path) for path in TRACES}


def rows(found):
    """Rows in an order, and as values, that do not depend on the engine."""

    def plain(value):
        return value.timestamp() if hasattr(value, "timestamp") else NAMES.get(value, value)

    return sorted((tuple(plain(value) for value in row) for row in found), key=repr)


def main():
    master = os.environ.get("SPARK_MASTER", "local-cluster[2,1,1024]")
    spark = (
        SparkSession.builder.master(master)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", tempfile.mkdtemp(dir=WORK))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    etwkit.spark.register(spark)
    print(f"{len(TRACES)} traces, Spark {spark.version} at {master}")

    duckdb.sql("set timezone = 'UTC'")
    pattern = str(WORK / "traces" / "*" / "*" / "*.etl")
    wrong = 0
    for table in ["events", *TABLES]:
        frame = spark.read.format("etl").option("table", table).load(pattern)
        assert frame.rdd.getNumPartitions() == len(TRACES)
        frame.createOrReplaceTempView("T")
        files = str(WORK / "dataset" / table / "*.parquet")
        duckdb.sql(f"create or replace view T as select * from read_parquet('{files}')")
        if table == "events":
            ours, theirs = spark.sql(EVENTS).collect(), duckdb.sql(EVENTS).fetchall()
        else:
            columns = ", ".join(f'"{name}"' for name in frame.columns)
            ours, theirs = frame.collect(), duckdb.sql(f"select {columns} from T").fetchall()
        ours, theirs = rows(ours), rows(theirs)
        equal = ours == theirs
        wrong += not equal
        total = duckdb.sql("select count(*) from T").fetchall()[0][0]
        groups = f" in {len(ours)} groups" if table == "events" else ""
        print(f"{table}: {total} rows{groups}, {'equal' if equal else 'DIFFERENT'}", flush=True)
        if not equal:
            print(" ", [pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:3])

    # Filters that are pushed down, and columns.
    def frame():
        # One for each query: see docs/scale.md.
        source = spark.read.format("etl").option("columns", "time,event,id,filetime")
        return source.option("pushdown", "true").load(pattern)

    files = f"{WORK}/dataset/events/*.parquet"
    duckdb.sql(f"create or replace view T as select * from read_parquet('{files}')")
    middle = duckdb.sql("select median(filetime)::bigint, median(time) from T").fetchall()[0][1]
    for name, ours, theirs in [
        ("event = 'GCStart_V2'", col("event") == "GCStart_V2", "event = 'GCStart_V2'"),
        ("id = 1", col("id") == 1, "id = 1"),
        ("time >= the middle", col("time") >= middle, f"time >= '{middle}'"),
    ]:
        count = frame().where(ours).count()
        expected = duckdb.sql(f"select count(*) from T where {theirs}").fetchall()[0][0]
        wrong += count != expected
        verdict = "equal" if count == expected else f"DIFFERENT: {expected}"
        print(f"{name}: {count} rows, {verdict}", flush=True)

    # The same from object storage.
    from moto.server import ThreadedMotoServer

    import s3fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    storage = {"key": "test", "secret": "test", "endpoint_url": f"http://{host}:{port}"}
    files = s3fs.S3FileSystem(**storage)
    files.mkdir("traces")
    some = TRACES[:20]
    for path in some:
        files.put(str(path), f"traces/{path.parent.name}/{path.name}")
    frame = (
        spark.read.format("etl")
        .option("storage", json.dumps(storage))
        .load("s3://traces/*/*.etl")
    )
    local = spark.read.format("etl").option("paths", json.dumps([str(p) for p in some])).load()
    ask = lambda f: rows(f.groupBy("event").count().orderBy("event").collect())  # noqa: E731
    remote = ask(frame)
    equal = remote == ask(local)
    wrong += not equal
    total = sum(count for _, count in remote)
    print(f"s3: {len(some)} traces, {total} rows, {'equal' if equal else 'DIFFERENT'}", flush=True)
    server.stop()
    spark.stop()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
