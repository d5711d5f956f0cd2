//! `views.sql`: the tables of a data set as views of DuckDB, and the joins that people need.

use std::fs;
use std::path::Path;

use super::failed;
use super::files;
use super::layout::{files_in, table_folders, table_of_folder};
use crate::Result;

/// The name of the file.
const NAME: &str = "views.sql";

const HEAD: &str = "\
-- The tables of this data set as views of DuckDB. Paths begin at the folder of the data set:
-- start `duckdb -init views.sql` there.
";

/// A view that joins tables.
struct Join {
    /// The tables that it needs.
    tables: &'static [&'static str],
    sql: &'static str,
}

const JOINS: [Join; 4] = [
    Join {
        tables: &["processes"],
        sql: "\
-- The process that had an id at a time: process_at('NAME-HASH', 4312, TIMESTAMPTZ '...').
CREATE OR REPLACE MACRO process_at(of_trace, of_pid, moment) AS TABLE
SELECT * FROM processes
WHERE trace = of_trace AND pid = of_pid
  AND coalesce(started <= moment, true) AND coalesce(ended >= moment, true);
",
    },
    Join {
        tables: &["images"],
        sql: "\
-- The image at an address of a process at a time. Images of the kernel are in all processes.
CREATE OR REPLACE MACRO image_at(of_trace, of_pid, of_address, moment) AS TABLE
SELECT * FROM images
WHERE trace = of_trace AND pid IN (of_pid, 0, 4)
  AND of_address >= address AND of_address < address + size_bytes
  AND coalesce(loaded <= moment, true) AND coalesce(unloaded >= moment, true);
",
    },
    Join {
        tables: &["methods"],
        sql: "\
-- The method of .NET at an address of a process at a time.
CREATE OR REPLACE MACRO method_at(of_trace, of_pid, of_address, moment) AS TABLE
SELECT * FROM methods
WHERE trace = of_trace AND pid = of_pid
  AND of_address >= address AND of_address < address + size_bytes
  AND coalesce(loaded <= moment, true) AND coalesce(unloaded >= moment, true);
",
    },
    Join {
        tables: &["samples", "frames"],
        sql: "\
-- Samples with the frames of their stacks: a row for each frame.
CREATE OR REPLACE VIEW sample_frames AS
SELECT s.trace, s.sequence, s.time, s.pid, s.process, s.tid, s.weight_us, f.depth, f.module, f.method
FROM samples s JOIN frames f USING (trace, stack_id);
",
    },
];

/// Writes `views.sql` into the folder of a data set.
pub(super) fn write(root: &Path) -> Result<()> {
    let mut tables = Vec::new();
    for folder in table_folders(root)? {
        let name = table_of_folder(root, &folder);
        let has_files = files::has_schema(&folder) || !files_in(&folder)?.is_empty();
        if has_files {
            let is_partition = folder
                .iter()
                .any(|part| part.to_string_lossy().contains('='));
            tables.push(Folder { name, is_partition });
        }
    }
    tables.dedup_by(|a, b| a.name == b.name);
    let mut text = HEAD.to_owned();
    for folder in &tables {
        text += &folder.view();
    }
    for join in JOINS {
        let mut needed = join.tables.iter();
        if needed.all(|needed| tables.iter().any(|table| table.name == *needed)) {
            text.push('\n');
            text += join.sql;
        }
    }
    let path = root.join(NAME);
    fs::write(&path, text).map_err(|error| failed(&path, error))
}

/// A folder with the files of a table.
struct Folder {
    name: String,
    /// Whether it is one of several, whose names have the value of a column.
    is_partition: bool,
}

impl Folder {
    fn view(&self) -> String {
        let view = match self.name.strip_prefix("typed/") {
            Some(kind) => quoted(kind),
            None => self.name.clone(),
        };
        let files = match self.is_partition {
            true => format!("{}/*/*.parquet", self.name),
            false => format!("{}/*.parquet", self.name),
        };
        let files = files.replace('\'', "''");
        format!(
            "CREATE OR REPLACE VIEW {view} AS\n\
             SELECT * FROM read_parquet('{files}', union_by_name = true);\n"
        )
    }
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
