//! Prints the selected records of a trace.

use etl_format::read::{Mode, Record, Records, Source};
use etl_format::{Clock, Error};
use etl_tools::filter::Filter;
use etl_tools::rows::RowWriter;

use super::Args;
use super::schemas::{columns, store};
use crate::Outcome;
use crate::error::Failure;
use crate::input::About;
use crate::output::Output;
use crate::progress::Progress;

/// Prints the selected records.
pub(super) struct Printer {
    pub(super) filter: Filter,
    pub(super) rows: RowWriter,
    pub(super) out: Output,
    left: u64,
    pub(super) progress: Progress,
    mode: Mode,
}

impl Printer {
    pub(super) fn new(
        args: &Args,
        processes: &Filter,
        clock: &Clock,
        progress: Progress,
    ) -> Result<Self, Failure> {
        let mut out = Output::new();
        let rows = RowWriter::new(args.format, *clock, store(args)?)
            .payload_bytes(args.raw)
            .columns(columns(args)?);
        rows.begin(&mut out.buffer);
        let mut filter = args.filter.filter(clock, processes)?;
        filter.learn_names(rows.store());
        Ok(Printer {
            filter,
            rows,
            out,
            left: args.limit.unwrap_or(u64::MAX),
            mode: if args.strict { Mode::Strict } else { Mode::Salvage },
            progress,
        })
    }

    pub(super) fn wants_more(&self) -> bool {
        self.left > 0
    }

    #[inline]
    pub(super) fn print(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        self.progress.pass(record.bytes().len());
        self.rows.learn(record);
        if self.rows.write_if(&self.filter, &mut self.out.buffer, record) {
            self.left -= 1;
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

    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.rows.end(&mut self.out.buffer);
        self.out.flush()?;
        for column in self.rows.columns_without_values() {
            stderr_line!("note: no printed event has a field {column}");
        }
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
