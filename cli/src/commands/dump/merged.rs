//! Prints several traces as one, in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use etl_format::Clock;
use etl_format::read::{Order, Records, Source};

use super::printer::{Printer, Session};
use super::{context, options, with_order};
use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::input::{self, Input};
use crate::output::Output;
use crate::progress::Progress;

/// A trace with its next row, which is formatted before it is known when it is printed.
struct Next<'s, S: Source> {
    records: Records<S>,
    printer: Printer<'s>,
    clock: Clock,
    row: Vec<u8>,
}

impl<S: Source> Next<'_, S> {
    /// Formats the next selected record; returns its time, and `None` after the last one.
    fn advance(&mut self) -> Result<Option<i64>, etl_format::Error> {
        self.row.clear();
        while let Some(record) = self.records.next_record()? {
            self.printer.progress.pass(record.bytes().len());
            self.printer.rows.learn(&record);
            if self.printer.rows.write_if(&self.printer.filter, &mut self.row, &record) {
                return Ok(Some(self.clock.filetime(record.timestamp())));
            }
        }
        Ok(None)
    }
}

/// Prints the traces; rows of the same time in the order of the files.
pub(super) fn print(session: &Session<'_>, paths: &[PathBuf]) -> Result<Outcome, Failure> {
    let args = session.args;
    let share = args.input.share(paths.len());
    let mut inputs = paths.iter().map(|p| Input::open(p, &share)).collect::<Result<Vec<_>, _>>()?;
    let mut selected = Vec::new();
    for input in &mut inputs {
        selected.push(args.filter.processes(input)?);
    }
    let machines: Vec<_> =
        inputs.iter_mut().map(|input| context::machine(input, session)).collect();
    let contexts: Vec<_> =
        machines.iter().map(|machine| context::context(machine.as_ref(), args)).collect();
    let options = options(args);
    let mut traces = Vec::new();
    for (input, machine) in inputs.iter_mut().zip(&machines) {
        traces.push(input.trace(&with_order(options, machine.as_ref()))?.0);
    }
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    let with = selected.iter().zip(&contexts);
    for ((trace, (processes, context)), path) in traces.iter_mut().zip(with).zip(paths) {
        let (name, clock) = (input::display(path), trace.clock());
        let progress = Progress::of_trace(trace, 1, true);
        let printer = Printer::new(session, Some(&name), processes, &clock, progress)?;
        let mut printer = printer.with_context(context.as_ref());
        crate::filter::learn_names(&mut printer.filter, trace, printer.rows.store());
        printer.flush()?;
        let records = trace.records(Order::Time).map_err(|e| Failure::trace(&name, &e))?;
        rows.push(Next { records, printer, clock, row: Vec::new() });
        names.push(name);
    }
    let mut waiting = BinaryHeap::new();
    for (at, (next, name)) in rows.iter_mut().zip(&names).enumerate() {
        let time = next.advance().map_err(|e| Failure::trace(name, &e))?;
        waiting.extend(time.map(|time| Reverse((time, at))));
    }
    let mut out = Output::new();
    while session.wants_more()
        && let Some(Reverse((_, at))) = waiting.pop()
        && let (Some(next), Some(name)) = (rows.get_mut(at), names.get(at))
    {
        out.buffer.extend(&next.row);
        out.flush_if_large()?;
        session.add(1);
        let time = next.advance().map_err(|e| Failure::trace(name, &e))?;
        waiting.extend(time.map(|time| Reverse((time, at))));
    }
    out.flush()?;
    let mut outcome = Outcome::Success;
    for (next, name) in rows.iter_mut().zip(&names) {
        next.printer.finish()?;
        let (order, damage) = (next.records.report(), next.records.damage().to_vec());
        let notes = next.records.notes().to_vec();
        let condition = Condition::new(next.records.header(), &damage, &notes);
        outcome = outcome.max(Condition { order, ..condition }.report(name));
    }
    Ok(outcome)
}
