"""Checks files of build servers against the schemas that editors use for them.

Usage: pipeline_files.py FILE...; the name of a file tells its kind. Prints for each file a JSON object with what is wrong
with it (null for nothing).
"""

import json
import pathlib
import sys

import fastjsonschema
import yaml

from schema_store import schemas

SCHEMAS = {
    "action.yml": "https://json.schemastore.org/github-action.json",
    "azure.yml": "https://raw.githubusercontent.com/microsoft/azure-pipelines-vscode/master/service-schema.json",
    "gitlab.yml": "https://gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json",
    "windows-record.yml": "https://json.schemastore.org/github-workflow.json",
}


def document(path):
    with open(path, encoding="utf-8") as file:
        read = yaml.safe_load(file)
    # YAML 1.1 takes the key `on` of workflows for a truth value.
    if True in read:
        read["on"] = read.pop(True)
    return read


def main():
    found = schemas(SCHEMAS.values())
    for path in sys.argv[1:]:
        schema = found[SCHEMAS[pathlib.Path(path).name]]
        wrong = None
        try:
            fastjsonschema.validate(schema, document(path))
        except fastjsonschema.JsonSchemaValueException as error:
            wrong = str(error)
        print(json.dumps({"file": pathlib.Path(path).name, "wrong": wrong}))


main()
