"""Runs the queries of a page over a data set and compares their output with what the page shows.

    queries.py DATASET PAGE [--write]

DATASET is a folder called `dataset`. Each block of SQL (DuckDB) or Python is followed by a block of
text, its output. `--write` writes the output into the page.
"""

import contextlib
import io
import os
import re
import sys

import duckdb

BLOCK = re.compile(r"```(sql|python)\n(.*?)```\n(\n```text\n(.*?)```\n)?", re.DOTALL)


def table(columns, rows):
    """Rows as text, numbers to the right."""
    cells = [[str(c) for c in columns]]
    for row in rows:
        cells.append(["" if v is None else f"{v:.1f}" if isinstance(v, float) else str(v) for v in row])
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    right = [all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(columns))]
    lines = []
    for row in cells:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines) + "\n"


def run_sql(connection, code):
    out = ""
    for statement in connection.extract_statements(code):
        result = connection.execute(statement)
        rows = result.fetchall()
        columns = [d[0] for d in result.description or []]
        if columns and columns != ["Count"]:
            out += table(columns, rows)
    return out


def run_python(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def main():
    dataset, page = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    write = "--write" in sys.argv
    with open(page, encoding="utf-8") as file:
        text = file.read()
    os.chdir(os.path.dirname(dataset))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    differences, count = [], 0

    def block(match):
        nonlocal count
        language, code, _, shown = match.groups()
        out = run_sql(connection, code) if language == "sql" else run_python(code)
        count += 1
        if out.strip() == "" and shown is None:
            return match.group(0)
        if shown != out:
            differences.append(f"{code}\nshown:\n{shown}\nfound:\n{out}")
        return f"```{language}\n{code}```\n\n```text\n{out}```\n"

    written = BLOCK.sub(block, text)
    if write:
        with open(page, "w", encoding="utf-8") as file:
            file.write(written)
    elif differences:
        print("\n".join(differences))
        sys.exit(1)
    print(f"{count} blocks")


main()
