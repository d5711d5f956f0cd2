//! Prints several traces as one, in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use etl_analysis::files::{self, MachineClock, Timeline};
use etl_events::filter::Filter;
use etl_format::read::{Options, Order, OrderCheck, Records, Source};

use super::context::Before;
use super::printer::{Printed, Printer, Session};
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
    /// Which of the files it is.
    file: usize,
    row: Vec<u8>,
}

impl<S: Source> Next<'_, S> {
    /// Formats the next selected record; returns its time, and `None` after the last one.
    fn advance(&mut self, timeline: &Timeline) -> Result<Option<i64>, etl_format::Error> {
        self.row.clear();
        while let Some(record) = self.records.next_record()? {
            self.printer.progress.pass(record.bytes().len());
            if self.printer.lines.write(&mut self.row, &record) {
                return Ok(Some(
                    timeline.timestamp(self.file, record.timestamp()).get(),
                ));
            }
        }
        Ok(None)
    }
}

/// Which traces are of one machine since one start of it, so that they name each other's processes:
/// for each trace the number of its machine, and its place among the traces of that machine. With
/// how their times relate.
fn relate(
    inputs: &mut [Input],
    options: &Options,
) -> Result<(Vec<(usize, usize)>, Timeline), Failure> {
    let (mut headers, mut clocks) = (Vec::new(), Vec::new());
    for input in inputs {
        let (trace, _) = input.trace(&Options {
            order_check: OrderCheck::Lookahead,
            ..*options
        })?;
        headers.push(trace.header().clone());
        clocks.push(trace.clock());
    }
    let machines = files::machines(&headers);
    let place = |(at, machine): (usize, &usize)| {
        (
            *machine,
            machines
                .iter()
                .take(at)
                .filter(|before| *before == machine)
                .count(),
        )
    };
    let places = machines.iter().enumerate().map(place).collect();
    let clocks = machines.iter().zip(clocks);
    let clocks: Vec<_> = clocks
        .map(|(&machine, clock)| MachineClock { machine, clock })
        .collect();
    Ok((places, Timeline::of_machines(&clocks)))
}

/// The selected processes in each trace. One that does not name them has those of another trace of
/// its machine.
fn processes(
    inputs: &mut [Input],
    together: &[(usize, usize)],
    session: &Session<'_>,
) -> Result<Vec<Filter>, Failure> {
    let own = inputs
        .iter_mut()
        .map(|input| session.args.filter.processes(input));
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for own in own {
        found.push(own.map_err(|failure| failures.push(failure)).ok());
    }
    if found.iter().all(Option::is_none)
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    let of_machine = |group: usize| {
        let mut others = found
            .iter()
            .zip(together)
            .filter(|(_, place)| place.0 == group);
        others.find_map(|(found, _)| found.clone())
    };
    let of = |(found, place): (&Option<Filter>, &(usize, usize))| {
        found
            .clone()
            .or_else(|| of_machine(place.0))
            .unwrap_or_else(Filter::of_no_process)
    };
    Ok(found.iter().zip(together).map(of).collect())
}

/// Prints the traces; rows of the same time in the order of the files.
pub(super) fn print(session: &Session<'_>, paths: &[PathBuf]) -> Result<Outcome, Failure> {
    let args = session.args;
    let share = args.input.share(paths.len());
    let mut inputs = paths
        .iter()
        .map(|p| Input::open(p, &share))
        .collect::<Result<Vec<_>, _>>()?;
    let options = options(args);
    let (together, timeline) = relate(&mut inputs, &options)?;
    let start = timeline.clock().start_time;
    let selected = processes(&mut inputs, &together, session)?;
    let mut before_by_group = Vec::new();
    for group in 0..=together.iter().map(|place| place.0).max().unwrap_or(0) {
        let own = inputs
            .iter_mut()
            .zip(&together)
            .filter(|(_, place)| place.0 == group);
        before_by_group.push(Before::of(own.map(|(input, _)| input), session));
    }
    let before_of = |group: usize| before_by_group.get(group).and_then(Option::as_ref);
    let machine_of = |group: usize| before_of(group).and_then(Before::machine);
    let contexts: Vec<_> = together
        .iter()
        .map(|&(group, file)| context::context(machine_of(group), file, session))
        .collect();
    let mut traces = Vec::new();
    for (input, &(group, _)) in inputs.iter_mut().zip(&together) {
        traces.push(input.trace(&with_order(options, before_of(group)))?.0);
    }
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    let with = selected
        .iter()
        .zip(&contexts)
        .zip(&together)
        .zip(paths)
        .enumerate();
    for (trace, (file, (((processes, context), place), path))) in traces.iter_mut().zip(with) {
        let (name, clock) = (input::display(path), timeline.clock_of(file));
        let progress = Progress::of_trace(trace, 1, true);
        let schemas = before_of(place.0).and_then(|before| before.schemas(place.1));
        let printed = Printed {
            file: Some(&name),
            clock,
            start,
            schemas,
            context: context.clone(),
            processes,
        };
        let mut printer = Printer::new(session, printed, progress)?;
        printer
            .learn_names(trace)
            .map_err(|error| Failure::trace(&name, &error))?;
        printer.flush()?;
        let records = trace
            .records(Order::Time)
            .map_err(|e| Failure::trace(&name, &e))?;
        rows.push(Next {
            records,
            printer,
            file,
            row: Vec::new(),
        });
        names.push(name);
    }
    let mut waiting = BinaryHeap::new();
    for (at, (next, name)) in rows.iter_mut().zip(&names).enumerate() {
        let time = next
            .advance(&timeline)
            .map_err(|e| Failure::trace(name, &e))?;
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
        let time = next
            .advance(&timeline)
            .map_err(|e| Failure::trace(name, &e))?;
        waiting.extend(time.map(|time| Reverse((time, at))));
    }
    out.flush()?;
    session.symbols.note_missing();
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
