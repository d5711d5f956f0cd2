//! Checks that a data set has what its entries state.

use std::collections::BTreeMap;

use super::Dataset;
use super::compact::{DataFile, trace_names};
use super::layout::{files_in, table_folders, table_of_folder};
use crate::Result;

/// What [`Dataset::check`] read and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Traces that have an entry.
    pub traces: u64,
    /// Files with rows.
    pub files: u64,
    /// Rows that were read.
    pub rows: u64,
    /// What is wrong, in the order of the tables.
    pub problems: Vec<Problem>,
}

/// Something that is wrong with a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or the table, from the folder of the data set.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// The rows that were read, by table and trace.
type Rows = BTreeMap<String, BTreeMap<String, u64>>;

impl Dataset {
    /// Reads all rows, and compares their numbers with the entries of the traces.
    ///
    /// # Errors
    /// When a folder cannot be read. A file that cannot be read is a [`Problem`].
    pub fn check(&self) -> Result<Checked> {
        let mut checked = Checked {
            traces: self.entries.len() as u64,
            ..Checked::default()
        };
        let mut read = Rows::new();
        for folder in table_folders(&self.root)? {
            let table = table_of_folder(&self.root, &folder);
            let rows = read.entry(table).or_default();
            for path in files_in(&folder)? {
                checked.files += 1;
                let counted = DataFile::read(&path).and_then(|file| count(&file));
                let place = path.strip_prefix(&self.root).unwrap_or(&path);
                let problem = match counted {
                    Ok(counted) => {
                        for (trace, count) in &counted.rows {
                            checked.rows += count;
                            *rows.entry(trace.clone()).or_default() += count;
                        }
                        counted.problem
                    }
                    Err(error) => Some(error.to_string()),
                };
                if let Some(message) = problem {
                    let place = place.display().to_string();
                    checked.problems.push(Problem { place, message });
                }
            }
        }
        self.compare(&read, &mut checked.problems);
        Ok(checked)
    }

    /// Compares the rows that were read with the entries.
    fn compare(&self, read: &Rows, problems: &mut Vec<Problem>) {
        let mut stated = Rows::new();
        for entry in &self.entries {
            for (table, count) in &entry.rows {
                let rows = stated.entry(table.clone()).or_default();
                rows.insert(entry.trace.clone(), *count);
            }
        }
        let empty = BTreeMap::new();
        let mut tables: Vec<&String> = read.keys().chain(stated.keys()).collect();
        tables.sort();
        tables.dedup();
        for table in tables {
            let read = read.get(table).unwrap_or(&empty);
            let stated = stated.get(table).unwrap_or(&empty);
            let mut traces: Vec<&String> = read.keys().chain(stated.keys()).collect();
            traces.sort();
            traces.dedup();
            for trace in traces {
                let count = read.get(trace).copied().unwrap_or(0);
                let expected = stated.get(trace).copied().unwrap_or(0);
                if count != expected {
                    problems.push(Problem {
                        place: table.clone(),
                        message: format!("{trace} has {count} rows, and its entry {expected}"),
                    });
                }
            }
        }
    }
}

/// The rows of a file, and what is wrong with it.
struct Counted {
    rows: BTreeMap<String, u64>,
    problem: Option<String>,
}

fn count(file: &DataFile) -> Result<Counted> {
    let mut rows = BTreeMap::new();
    let mut nameless = 0;
    for batch in file.batches()? {
        for name in trace_names(&batch?) {
            match name {
                Some(name) => match rows.get_mut(name) {
                    Some(count) => *count += 1,
                    None => drop(rows.insert(name.to_owned(), 1)),
                },
                None => nameless += 1,
            }
        }
    }
    let problem = if nameless > 0 {
        Some(format!("{nameless} rows have no trace"))
    } else if rows != file.traces {
        Some("it states other numbers of rows than it has".to_owned())
    } else {
        None
    };
    Ok(Counted { rows, problem })
}
