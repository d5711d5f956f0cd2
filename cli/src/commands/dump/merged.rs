//! Prints several traces as one, in time order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};

use etl_analysis::files::{self, MachineClock, Timeline};
use etl_events::context::Context;
use etl_events::filter::Filter;
use etl_format::read::{Options, Order, OrderCheck, Records, Source, Trace};
use etl_format::{Clock, FileHeader, Ticks};
use etl_schema::store::SchemaStore;

use super::context::Before;
use super::printer::{Printed, Printer, Session};
use super::{context, options, with_order};
use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs};
use crate::output::Output;
use crate::progress::{Printing, Progress};

/// The machine of a trace. Traces of one machine and one boot name each other's processes.
#[derive(Clone, Copy)]
struct Place {
    /// The number of the machine.
    machine: usize,
    /// The index of the trace among the traces of the machine.
    file: usize,
}

/// How traces relate to each other.
struct Relations {
    places: Vec<Place>,
    timeline: Timeline,
}

/// What was printed.
pub(super) struct Merged {
    pub outcome: Outcome,
    /// Why other traces cannot be read.
    pub failures: Vec<Failure>,
}

/// The traces that can be read.
#[derive(Default)]
struct Opened<'p> {
    paths: Vec<&'p Path>,
    inputs: Vec<Input>,
    headers: Vec<FileHeader>,
    clocks: Vec<Clock>,
    /// Why the other traces cannot be read.
    failures: Vec<Failure>,
}

impl<'p> Opened<'p> {
    /// Opens traces. They share the memory that all of them together may need.
    fn new(paths: &'p [PathBuf], args: &InputArgs, options: &Options) -> Self {
        let share = args.share(paths.len());
        let mut opened = Opened::default();
        let mut inputs = Vec::new();
        for path in paths {
            match Input::open(path, &share) {
                Ok(input) => inputs.push((path.as_path(), input)),
                Err(failure) => opened.failures.push(failure),
            }
        }
        let mut size = 0u64;
        for (_, input) in &mut inputs {
            size = size.saturating_add(input.size());
        }
        for (path, mut input) in inputs {
            input.set_limits(share.limits(size));
            if let Err(failure) = opened.add(path, input, options) {
                opened.failures.push(failure);
            }
        }
        opened
    }

    fn add(&mut self, path: &'p Path, mut input: Input, options: &Options) -> Result<(), Failure> {
        let (trace, _) = input.trace(&Options {
            order_check: OrderCheck::Lookahead,
            ..*options
        })?;
        let header = trace.header().clone();
        let clock = trace.clock();
        drop(trace);
        self.headers.push(header);
        self.clocks.push(clock);
        self.paths.push(path);
        self.inputs.push(input);
        Ok(())
    }
}

/// Finds out which traces are of one machine, and how their times relate.
fn relate(headers: &[FileHeader], clocks: Vec<Clock>) -> Relations {
    let machines = files::machines(headers);
    let mut places = Vec::new();
    let mut files: BTreeMap<usize, usize> = BTreeMap::new();
    for &machine in &machines {
        let count = files.entry(machine).or_default();
        places.push(Place {
            machine,
            file: *count,
        });
        *count += 1;
    }
    let mut machine_clocks = Vec::new();
    for (machine, clock) in machines.into_iter().zip(clocks) {
        machine_clocks.push(MachineClock { machine, clock });
    }
    Relations {
        places,
        timeline: Timeline::of_machines(&machine_clocks),
    }
}

/// The filter of the selected processes for each trace. A trace that does not name them gets the
/// filter of another trace of its machine.
fn filters(
    inputs: &mut [Input],
    places: &[Place],
    session: &Session<'_>,
) -> Result<Vec<Filter>, Failure> {
    let mut filters = Vec::new();
    let mut last_failure = None;
    for input in inputs {
        match session.args.filter.processes(input) {
            Ok(filter) => filters.push(Some(filter)),
            Err(failure) => {
                filters.push(None);
                last_failure = Some(failure);
            }
        }
    }
    if filters.iter().all(Option::is_none)
        && let Some(failure) = last_failure
    {
        return Err(failure);
    }
    let mut by_machine: BTreeMap<usize, Filter> = BTreeMap::new();
    for (filter, place) in filters.iter().zip(places) {
        if let Some(filter) = filter {
            by_machine
                .entry(place.machine)
                .or_insert_with(|| filter.clone());
        }
    }
    let mut complete = Vec::new();
    for (filter, place) in filters.into_iter().zip(places) {
        complete.push(match (filter, by_machine.get(&place.machine)) {
            (Some(filter), _) => filter,
            (None, Some(filter)) => filter.clone(),
            (None, None) => Filter::of_no_process(),
        });
    }
    Ok(complete)
}

/// Reads the traces of each machine as a whole.
fn read_machines(
    inputs: &mut [Input],
    places: &[Place],
    session: &Session<'_>,
) -> Vec<Option<Before>> {
    let last = places.iter().map(|place| place.machine).max().unwrap_or(0);
    let mut machines = Vec::new();
    for machine in 0..=last {
        let mut members = Vec::new();
        for (input, place) in inputs.iter_mut().zip(places) {
            if place.machine == machine {
                members.push(input);
            }
        }
        machines.push(Before::read(members, session));
    }
    machines
}

/// The names, schemas and filter for the rows of a trace.
struct RowSource<'m> {
    name: String,
    filter: Filter,
    context: Option<Context<'m>>,
    schemas: Option<SchemaStore>,
}

/// A trace with its next row, which is formatted before its turn comes.
struct Next<'s, S: Source> {
    records: Records<S>,
    printer: Printer<'s>,
    name: String,
    /// The index of the trace.
    file: usize,
    row: Vec<u8>,
}

impl<'s, 't, S: Source> Next<'s, &'t mut S> {
    fn new(
        session: &'s Session<'s>,
        timeline: &Timeline,
        file: usize,
        source: RowSource<'s>,
        trace: &'t mut Trace<S>,
    ) -> Result<Self, Failure> {
        let name = source.name;
        let printed = Printed {
            file: Some(&name),
            clock: timeline.clock_of(file),
            start: timeline.clock().start_time,
            schemas: source.schemas,
            context: source.context,
            processes: &source.filter,
        };
        let progress = Progress::of_trace(trace, 1, Printing::Events);
        let mut printer = Printer::new(session, printed, progress)?;
        printer
            .learn_names(trace)
            .map_err(|error| Failure::trace(&name, &error))?;
        printer.flush()?;
        let records = trace
            .records(Order::Time)
            .map_err(|error| Failure::trace(&name, &error))?;
        Ok(Next {
            records,
            printer,
            name,
            file,
            row: Vec::new(),
        })
    }
}

impl<S: Source> Next<'_, S> {
    /// Formats the next selected record. Returns its time, or `None` after the last record.
    fn advance(&mut self, timeline: &Timeline) -> Result<Option<Ticks>, Failure> {
        self.row.clear();
        loop {
            let record = match self.records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(error) => return Err(Failure::trace(&self.name, &error)),
            };
            self.printer.progress.pass(record.bytes().len());
            if self.printer.lines.write(&mut self.row, &record) {
                return Ok(Some(timeline.timestamp(self.file, record.timestamp())));
            }
        }
    }
}

/// Prints the traces; rows of the same time in the order of the files. Traces that cannot be read
/// are left out.
pub(super) fn print(session: &Session<'_>, paths: &[PathBuf]) -> Result<Merged, Failure> {
    let args = session.args;
    let options = options(args);
    let Opened {
        paths,
        mut inputs,
        headers,
        clocks,
        failures,
    } = Opened::new(paths, &args.input, &options);
    let mut merged = Merged {
        outcome: Outcome::Success,
        failures,
    };
    if inputs.is_empty() {
        return Ok(merged);
    }
    let Relations { places, timeline } = relate(&headers, clocks);
    let filters = filters(&mut inputs, &places, session)?;
    let machines = read_machines(&mut inputs, &places, session);
    let mut sources = Vec::new();
    let mut traces = Vec::new();
    for (((input, filter), path), place) in inputs.iter_mut().zip(filters).zip(&paths).zip(&places)
    {
        let before = machines.get(place.machine).and_then(Option::as_ref);
        let machine = before.and_then(Before::machine);
        sources.push(RowSource {
            name: input::display(path),
            filter,
            context: context::context(machine, place.file, session),
            schemas: before.and_then(|before| before.schemas(place.file)),
        });
        let (trace, _) = input.trace(&with_order(options, before))?;
        traces.push(trace);
    }
    let mut rows = Vec::new();
    for (file, (trace, source)) in traces.iter_mut().zip(sources).enumerate() {
        rows.push(Next::new(session, &timeline, file, source, trace)?);
    }
    print_rows(session, &timeline, &mut rows)?;
    session.symbols.note_missing();
    for next in &mut rows {
        next.printer.finish()?;
        let records = &next.records;
        let damage = records.damage().to_vec();
        let notes = records.notes().to_vec();
        let mut condition = Condition::new(records.header(), &damage, &notes);
        condition.order = records.report();
        merged.outcome = merged.outcome.max(condition.report(&next.name));
    }
    Ok(merged)
}

/// Prints the rows of all traces in time order.
fn print_rows<S: Source>(
    session: &Session<'_>,
    timeline: &Timeline,
    rows: &mut [Next<'_, S>],
) -> Result<(), Failure> {
    let mut waiting = BinaryHeap::new();
    for (index, next) in rows.iter_mut().enumerate() {
        if let Some(time) = next.advance(timeline)? {
            waiting.push(Reverse((time, index)));
        }
    }
    let mut out = Output::new();
    while session.wants_more()
        && let Some(Reverse((_, index))) = waiting.pop()
        && let Some(next) = rows.get_mut(index)
    {
        out.buffer.extend(&next.row);
        out.flush_if_large()?;
        session.add(1);
        if let Some(time) = next.advance(timeline)? {
            waiting.push(Reverse((time, index)));
        }
    }
    Ok(out.flush()?)
}
