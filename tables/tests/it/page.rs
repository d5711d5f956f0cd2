//! The page that documents all columns.

use std::fs;
use std::path::Path;

use etl_tables::tables::{self, Table};
use etl_tables::{Column, SCHEMA_VERSION};

/// A text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= 100;
            out.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// The page on tables, from the tables.
fn page() -> String {
    let mut page = format!(
        "# Columns of all tables\n\n{}\n\n{INTRODUCTION}\n",
        wrapped(&format!(
            "The tables that `etlkit export parquet` and `etlkit export arrow` write, that `etlkit \
         analyze` prints as JSON and CSV, and that the crate `etl-tables` returns. This is version \
         {SCHEMA_VERSION} of the tables; files have it as the metadata `etlkit.schema`. It changes \
         when a column changes its meaning or its type, or is removed."
        ))
    );
    for table in tables::ALL {
        page += &section(table, &table.data_set_columns());
    }
    page += TYPED;
    page += REPORTS;
    for table in tables::REPORTS {
        page += "\n";
        page += section(table, &table.columns()).trim_end();
        page.push('\n');
    }
    page
}

/// The part of the page on a table.
fn section(table: &Table, columns: &[Column]) -> String {
    let text = format!("{}. {}", table.row, table.about);
    let mut section = format!("## {}\n\n{}\n\n", table.name, wrapped(&text));
    section += "| column | type | content |\n|---|---|---|\n";
    for column in columns.iter().filter(|column| column.name != "trace") {
        let mut kind = column
            .kind
            .sql()
            .replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ");
        if !column.unit.is_empty() {
            kind += &format!(", {}", column.unit);
        }
        if column.nullable {
            kind += ", null";
        }
        let request = if column.on_request {
            " (on request)"
        } else {
            ""
        };
        section += &format!(
            "| `{}`{request} | {kind} | {} |\n",
            column.name, column.meaning
        );
    }
    section.push('\n');
    section
}

const INTRODUCTION: &str = "\
[tables.md](tables.md) describes data sets and units, and has questions with answers in SQL. In a
data set, each table also has the column `trace` (VARCHAR), the name of the trace: its file name
without the folder.

TIMESTAMPTZ is TIMESTAMP WITH TIME ZONE, in UTC. Addresses and keywords are unsigned numbers; signed
columns contain the same bits. `null` means that the value can be null.
";

const TYPED: &str = "\
## typed/Provider.Event

One event of this kind, if `--typed` is given. The columns are the first columns of `events`, from
`trace` to `thread`, then `version`, `activity`, and a column for each field of the event with the
name of the field. A name that differs from another column only in capital letters gets an
underscore.

| field | type |
|---|---|
| integers of 8 and 16 bits, signed integers of 32 bits | INTEGER |
| other integers, pointers | BIGINT |
| BOOL | BOOLEAN |
| float, double | DOUBLE |
| FILETIME, SYSTEMTIME | TIMESTAMPTZ |
| bytes | BLOB |
| text, GUIDs, SIDs, network addresses | VARCHAR |
| arrays, structures | VARCHAR, as JSON |

If the values of a field have names, as status codes do, there is also a column `FIELD_name`. Arrays
and structures are as in `fields` of `events`. The versions of an event share a table; a field that
a version does not have is null. If a field has two types in two versions, the column has the wider
type: BOOLEAN, INTEGER, BIGINT; or DOUBLE for INTEGER and DOUBLE; otherwise VARCHAR.

The first 4,096 kinds of events of a trace have tables. Events of further kinds are in the table
`typed/other_events`, with `provider`, `event`, and `fields` as in `events`.

The columns are those of all versions that the tables of this project, `--manifest` and `--tmf`
describe, in the same order and with the same types in every trace. Only an event that the trace
itself describes (TraceLogging, `EventSource`), or another version of which it describes, may have
other columns in another trace. Read such tables by name: `union_by_name = true` in DuckDB,
`missing_columns=\"insert\"` in Polars.
";

const REPORTS: &str = "
# Tables of reports

Tables that only `etlkit analyze` has, in the JSON of one kind of report: `gc.processes` is the
member `processes` of the report `gc`. The member `rows` of `cpu`, and of `waits`, `contention` and
`allocations` with options for stacks, is one of the tables `cpu.VIEW.rows`: `cpu` has the numbers
of samples, `allocations` bytes, the others the numbers of waits.
";

#[test]
fn page_lists_all_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/columns.md");
    let page = page();
    if std::env::var_os("ETLKIT_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        page,
        "ETLKIT_WRITE_DOCS=1 writes it again"
    );
}
