"""Reads reports as others do: JSON against a JSON Schema, SARIF against its own, JUnit with a reader of it.

Usage: report_formats.py SCHEMA FILE...; files end in .json, .sarif or .xml. Prints one JSON object for each file: what is
wrong with it (null for nothing), and of JUnit how many tests there are, have failed, ended with an error and were skipped. Ends with 3 where the
packages of scripts/requirements.txt are not there.
"""

import json
import sys

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"

try:
    import fastjsonschema
    from junitparser import JUnitXml
    from schema_store import schemas

    SARIF_SCHEMA = schemas([SARIF])[SARIF]
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(3)



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
    is_sarif = fastjsonschema.compile(SARIF_SCHEMA)
    for path in sys.argv[2:]:
        print(json.dumps(read(path, is_ours, is_sarif)))


main()
