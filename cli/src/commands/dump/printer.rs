//! Prints the selected records of a trace.

use std::cell::{Cell, RefCell};

use etl_events::conditions::Conditions;
use etl_events::context::Context;
use etl_events::filter::Filter;
use etl_events::rows::{Columns, Format, RowWriter};
use etl_events::{Depth, EventDecoder, Selection};
use etl_format::read::{Mode, Record, Records, Source, Trace};
use etl_format::{Clock, Error, FileTime};
use etl_schema::store::SchemaStore;

use super::Args;
use super::lines::Lines;
use crate::Outcome;
use crate::error::Failure;
use crate::filter;
use crate::input::About;
use crate::output::Output;
use crate::progress::Progress;
use crate::symbols::Symbols;

/// The common state of the traces of one run.
pub(super) struct Session<'a> {
    pub(super) args: &'a Args,
    /// The PDBs that `--symbols` names.
    pub(super) symbols: Symbols,
    /// The schemas that are known without the traces.
    pub(super) store: SchemaStore,
    conditions: Conditions,
    /// The form of rows, and which columns had values so far.
    pub(super) rows: RefCell<RowWriter>,
    begun: Cell<bool>,
    /// The selected names of providers that none of the traces so far defines.
    unknown: RefCell<Option<Vec<String>>>,
    /// Events that were printed or counted.
    pub(super) matched: Cell<u64>,
    /// How many more events may be printed.
    left: Cell<u64>,
}

impl<'a> Session<'a> {
    /// `several` traces get a column with the name of the file.
    pub(super) fn new(args: &'a Args, several: bool) -> Result<Self, Failure> {
        let conditions = Conditions::new(&args.event, &args.conditions, &args.grep)
            .map_err(|e| Failure::new("--where", e.to_string()))?;
        let mut rows = RowWriter::new(args.format).columns(columns(args)?);
        if args.raw {
            rows = rows.payload_bytes();
        }
        if args.relative {
            rows = rows.relative_times();
        }
        if several {
            rows = rows.file_column();
        }
        Ok(Session {
            args,
            symbols: args.symbols.open()?,
            store: args.schemas.store(&args.input)?,
            conditions,
            rows: RefCell::new(rows),
            begun: Cell::new(false),
            unknown: RefCell::new(None),
            matched: Cell::new(0),
            left: Cell::new(args.limit.unwrap_or(u64::MAX)),
        })
    }

    /// Selects the events that a filter and the conditions of the arguments admit.
    pub(super) fn selection(&self, filter: Filter) -> Selection {
        let selection = Selection::default()
            .filter(filter)
            .conditions(self.conditions.clone());
        if self.args.stale {
            selection.with_stale_records()
        } else {
            selection
        }
    }

    /// Whether more events are wanted.
    pub(super) fn wants_more(&self) -> bool {
        self.left.get() > 0
    }

    /// Notes that events were selected.
    pub(super) fn add(&self, matched: u64) {
        self.matched.set(self.matched.get().saturating_add(matched));
        self.left.set(self.left.get().saturating_sub(matched));
    }

    /// Writes the beginning of the output, once.
    pub(super) fn begin(&self, out: &mut Output) {
        if !self.begun.replace(true) && !self.args.count {
            self.rows.borrow().begin(&mut out.buffer);
        }
    }

    /// Notes the selected names of providers that one of the traces does not define.
    pub(super) fn add_unknown(&self, names: Vec<String>) {
        let mut unknown = self.unknown.borrow_mut();
        match &mut *unknown {
            Some(others) => others.retain(|name| names.contains(name)),
            None => *unknown = Some(names),
        }
    }

    /// The selected names of providers that no trace defines.
    pub(super) fn unknown(&self) -> Vec<String> {
        self.unknown.borrow_mut().take().unwrap_or_default()
    }

    /// Writes the end of the output, and notes about all rows. Writes nothing if all traces failed
    /// before a row could be printed.
    pub(super) fn end(&self, is_success: bool) -> Result<(), Failure> {
        if !self.begun.get() && !is_success {
            return Ok(());
        }
        let mut out = Output::new();
        self.begin(&mut out);
        let rows = self.rows.borrow();
        if self.args.count {
            out.buffer
                .extend(format!("{}\n", self.matched.get()).as_bytes());
        } else {
            rows.end(&mut out.buffer);
        }
        out.flush()?;
        for column in rows.columns_without_values() {
            stderr_line!("note: no printed event has a field {column}");
        }
        Ok(())
    }
}

/// The columns of the CSV.
fn columns(args: &Args) -> Result<Columns, Failure> {
    if args.columns.is_empty() {
        return Ok(Columns::default());
    }
    if args.format != Format::Csv {
        return Err(Failure::new("--columns", "needs the CSV format").hint("add --format csv"));
    }
    Columns::new(&args.columns).map_err(|e| Failure::new("--columns", e.to_string()))
}

/// A trace that is printed.
pub(super) struct Printed<'s, 'n> {
    /// The name of the file, if rows have it.
    pub(super) file: Option<&'n str>,
    pub(super) clock: Clock,
    /// Seconds count from this time.
    pub(super) start: FileTime,
    /// The schemas of the whole trace, if they are known.
    pub(super) schemas: Option<SchemaStore>,
    /// The names of the whole trace for processes, threads, paths and addresses.
    pub(super) context: Option<Context<'s>>,
    /// The selected processes.
    pub(super) processes: &'n Filter,
}

/// Prints the selected records of one trace.
pub(super) struct Printer<'s> {
    pub(super) session: &'s Session<'s>,
    pub(super) lines: Lines<'s>,
    pub(super) out: Output,
    pub(super) progress: Progress,
    mode: Mode,
    /// Whether the schemas of the whole trace are known.
    has_schemas: bool,
}

impl<'s> Printer<'s> {
    pub(super) fn new(
        session: &'s Session<'s>,
        trace: Printed<'s, '_>,
        progress: Progress,
    ) -> Result<Self, Failure> {
        let args = session.args;
        let has_schemas = trace.schemas.is_some();
        let store = trace.schemas.unwrap_or_else(|| session.store.clone());
        let start = trace.start;
        let mut filter =
            args.filter
                .filter_since(FileTime::new(start.get()), &trace.clock, trace.processes)?;
        filter.learn_names(&store);
        let rows = session.rows.borrow().clone();
        let mut decoder = EventDecoder::new(trace.clock, store)
            .context(trace.context)
            .file(trace.file)
            .start(start);
        if !rows.needs_schema() && session.conditions.is_empty() {
            decoder = decoder.depth(Depth::Headers);
        }
        let selection = session.selection(filter);
        let lines = Lines {
            decoder,
            selection,
            rows,
            is_count: args.count,
        };
        let mut out = Output::new();
        session.begin(&mut out);
        let mode = if args.strict {
            Mode::Strict
        } else {
            Mode::Salvage
        };
        Ok(Printer {
            session,
            lines,
            out,
            progress,
            mode,
            has_schemas,
        })
    }

    /// Resolves the names of providers that only the trace can define, and notes the names that it
    /// does not define.
    pub(super) fn learn_names<S: Source>(&mut self, trace: &mut Trace<S>) -> Result<(), Error> {
        let filter = self.lines.selection.filter_mut();
        let store = self.lines.decoder.store();
        let unknown = if self.has_schemas {
            filter.learn_names(store)
        } else {
            filter::learn_names(filter, trace, store)?
        };
        self.session.add_unknown(unknown);
        Ok(())
    }

    pub(super) fn wants_more(&self) -> bool {
        self.session.wants_more()
    }

    #[inline]
    pub(super) fn print(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        self.progress.pass(record.bytes().len());
        if self.lines.write(&mut self.out.buffer, record) {
            self.session.add(1);
            self.out.flush_if_large()?;
        }
        Ok(())
    }

    /// Prints the remaining records, up to the limit. Returns the error that ended reading, if any.
    pub(super) fn all<S: Source>(
        &mut self,
        records: &mut Records<S>,
    ) -> Result<Option<Error>, Failure> {
        while self.wants_more() {
            match records.next_record() {
                Ok(Some(record)) => self.print(&record)?,
                Ok(None) => break,
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }

    /// Writes the printed rows to standard output.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.out.flush()?;
        self.session
            .rows
            .borrow_mut()
            .merge_columns(&self.lines.rows);
        Ok(())
    }

    /// Finishes the output, then returns the failure.
    pub(super) fn fail(&mut self, name: &str, error: &Error) -> Result<Outcome, Failure> {
        self.finish()?;
        Err(match self.mode {
            Mode::Strict => About::named(name).unreadable(self.mode, error),
            Mode::Salvage => Failure::trace(name, error),
        })
    }
}
