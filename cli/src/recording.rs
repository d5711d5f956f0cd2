//! The arguments of the commands that analyse traces, and the pass over the traces as one
//! recording.

use std::collections::BTreeSet;
use std::path::PathBuf;

use etl_analysis::machine::Span;
use etl_analysis::{
    Analysis, EventRef, Joins, Machine, Observer, ProcessIndex, ProcessLives, ProcessSelector,
    Recording, UnknownProcess, files,
};
use etl_format::read::{Budget, Limits, Record, Source};
use etl_format::{Clock, FileHeader, ThreadId, TimeRange};

use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::filter;
use crate::input::{self, About, Input, InputArgs};
use crate::process_args::ProcessArgs;
use crate::progress::Progress;
use crate::threads::ThreadArgs;

/// The traces to analyse, and which part of them.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// Trace to read; `-` is standard input. Several traces are read as one recording: for example
    /// a trace of the kernel and a trace of the CLR
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Accepted because `etlkit verify` has it: several traces are always read together
    #[arg(long, hide = true)]
    together: bool,
    #[command(flatten)]
    pub processes: ProcessArgs,
    /// Select the thread with this id; may be repeated
    #[arg(long, value_name = "TID", value_parser = filter::thread_id)]
    pub thread: Vec<ThreadId>,
    /// Select events at or after TIME: seconds since the start (1.5), a duration since then
    /// (250ms), or UTC (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// Select events before TIME
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub input: InputArgs,
}

/// A recording that was read.
#[derive(Debug)]
pub(crate) struct Analyzed<O> {
    /// Names of the files.
    pub names: Vec<String>,
    pub machine: Machine,
    /// The indices of the selected processes; `None` if all are selected.
    pub selected: Option<BTreeSet<ProcessIndex>>,
    /// The selected time.
    pub range: TimeRange,
    pub observer: O,
    /// The condition of the files.
    pub outcome: Outcome,
    /// The memory for reading the files, and for results.
    pub budget: Option<Budget>,
    /// What standard error says of their condition.
    pub conditions: Vec<String>,
}

impl<O> Analyzed<O> {
    /// Fails if a result of about so many bytes exceeds the memory for the recording.
    pub fn ensure_memory(&self, bytes: u64) -> Result<(), Failure> {
        ensure_memory(self.budget, &self.names, bytes)
    }

    /// The selected part of the time of the recording.
    pub fn selected_span(&self) -> Span {
        let Span { first, last } = self.machine.span().unwrap_or_default();
        Span {
            first: match self.range.from {
                Some(from) => from.max(first),
                None => first,
            },
            last: match self.range.to {
                Some(to) => to.min(last),
                None => last,
            },
        }
    }
}

/// Fails if a result of about so many bytes exceeds the memory for the files.
pub(crate) fn ensure_memory(
    budget: Option<Budget>,
    names: &[String],
    bytes: u64,
) -> Result<(), Failure> {
    let Some(budget) = budget else {
        return Ok(());
    };
    let needed = (budget.used)().saturating_add(bytes);
    if needed <= budget.bytes {
        return Ok(());
    }
    let message = format!(
        "the result needs {needed} bytes of memory, and the memory budget is {} bytes",
        budget.bytes
    );
    Err(Failure::new(names.join(", "), message).hint("--max-memory allows more"))
}

/// The selected processes.
#[derive(Clone, Debug)]
pub(crate) struct SelectedProcesses {
    /// When they have their ids.
    pub lives: ProcessLives,
    /// Their threads that belong to them before an event says so.
    pub first_threads: BTreeSet<ThreadId>,
}

impl RecordingArgs {
    /// Reads the recording with an observer for the selected time.
    pub fn analyze<O: Observer>(
        &self,
        observer: impl FnOnce(TimeRange) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        self.analyze_files(&self.files, self.processes.selector(), observer)
    }

    /// Reads other files than the files of the arguments as a recording, in the same way, and
    /// selects these processes.
    pub fn analyze_files<O: Observer>(
        &self,
        files: &[PathBuf],
        selector: ProcessSelector,
        observer: impl FnOnce(TimeRange) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        let inputs = self.open(files)?;
        self.read(inputs, selector, Passes::One, |range, _| observer(range))
    }

    /// As [`RecordingArgs::analyze`], for an observer that has to know the selected processes while
    /// it observes: if there are any, the recording is read for them before.
    pub fn analyze_selected<O: Observer>(
        &self,
        observer: impl FnOnce(TimeRange, Option<SelectedProcesses>) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        let inputs = self.open(&self.files)?;
        let selector = self.processes.selector();
        let passes = if selector.is_empty() {
            Passes::One
        } else {
            Passes::ProcessesFirst
        };
        self.read(inputs, selector, passes, observer)
    }

    fn open(&self, files: &[PathBuf]) -> Result<Inputs, Failure> {
        if files.len() > 1
            && let Some(stdin) = files.iter().find(|f| input::is_stdin(f))
        {
            return Err(
                Failure::new(input::display(stdin), "cannot be one of several traces")
                    .hint("write it to a file first"),
            );
        }
        input::reject_twice(files, "name each trace once")?;
        let share = self.input.share(files.len());
        let mut inputs = Vec::new();
        for file in files {
            inputs.push(Input::open(file, &share)?);
        }
        for input in &mut inputs {
            input.ensure_records()?;
        }
        let size = inputs.iter_mut().map(Input::size).sum();
        Ok(Inputs {
            abouts: inputs.iter().map(|input| input.about().clone()).collect(),
            limits: share.limits(size),
            inputs,
        })
    }

    fn read<O: Observer>(
        &self,
        inputs: Inputs,
        mut selector: ProcessSelector,
        passes: Passes,
        observer: impl FnOnce(TimeRange, Option<SelectedProcesses>) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        let Inputs {
            mut inputs,
            abouts,
            limits,
        } = inputs;
        let names: Vec<String> = abouts.iter().map(|about| about.name.clone()).collect();
        let sources: Vec<_> = inputs
            .iter_mut()
            .map(Input::source)
            .zip(names.clone())
            .collect();
        let mut recording =
            Recording::open_within(sources, limits).map_err(|error| failure(&abouts, error))?;
        warn_of_others(
            recording.files().iter().map(|file| file.trace.header()),
            &names,
        );
        let mut selected = None;
        if passes == Passes::ProcessesFirst {
            let machine = Analysis::new()
                .run_for_owners(&mut recording, &mut ())
                .map_err(|error| failure(&abouts, error))?;
            selector = selector
                .find_others(&machine, &mut recording)
                .map_err(|error| failure(&abouts, error))?;
            selected = Some(SelectedProcesses {
                lives: selector
                    .lives(&machine)
                    .map_err(|error| no_process(&names, &error))?,
                first_threads: selector
                    .first_threads(&machine)
                    .map_err(|error| no_process(&names, &error))?,
            });
        }
        let range = self.range(&recording.timeline().clock())?;
        let progress = Progress::of_traces(recording.files().iter().map(|file| &file.trace));
        let mut observers = (observer(range, selected), ShownProgress(progress));
        let machine = Analysis::new()
            .with_names()
            .without_addresses()
            .threads(self.threads.count())
            .run(&mut recording, &mut observers)
            .map_err(|error| failure(&abouts, error))?;
        let (observer, progress) = observers;
        let mut selected = None;
        if !selector.is_empty() {
            let selector = selector
                .find_others(&machine, &mut recording)
                .map_err(|error| failure(&abouts, error))?;
            let processes = selector.select(&machine);
            selected = Some(processes.map_err(|error| no_process(&names, &error))?);
        }
        note_empty_range(range, &machine);
        let Reported {
            outcome,
            conditions,
        } = report_conditions(&recording, &machine);
        drop(progress);
        Ok(Analyzed {
            names,
            machine,
            selected,
            range,
            observer,
            outcome,
            budget: limits.budget,
            conditions,
        })
    }

    /// Whether a part of the time is selected.
    pub fn has_range(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// The selected time.
    pub fn range(&self, clock: &Clock) -> Result<TimeRange, Failure> {
        filter::range(self.from.as_deref(), self.to.as_deref(), clock)
    }
}

/// The failure that a selected process is not in the recording, whose files have these names.
/// What is missing from files, as it was reported.
struct Reported {
    outcome: Outcome,
    /// Sentences; of several files with their names.
    conditions: Vec<String>,
}

/// Reports what is missing from each file on standard error.
fn report_conditions<S: Source>(recording: &Recording<S>, machine: &Machine) -> Reported {
    let mut outcome = Outcome::Success;
    let mut conditions = Vec::new();
    let is_one = recording.files().len() == 1;
    for (file, facts) in recording.files().iter().zip(machine.files()) {
        let ranges = facts.damage.iter();
        let damage: Vec<_> = ranges.map(|range| range.damage.clone()).collect();
        let trace = &file.trace;
        let condition = Condition::new(trace.header(), &damage, trace.notes());
        outcome = outcome.max(condition.report(&file.name));
        for sentence in condition.reported() {
            conditions.push(if is_one {
                sentence
            } else {
                format!("{}: {sentence}", file.name)
            });
        }
    }
    Reported {
        outcome,
        conditions,
    }
}

fn no_process(files: &[String], error: &UnknownProcess) -> Failure {
    let name = files.first().cloned().unwrap_or_default();
    Failure::new(name, error.to_string()).hint(ProcessArgs::HINT)
}

/// The opened files of a recording.
struct Inputs {
    inputs: Vec<Input>,
    abouts: Vec<About>,
    limits: Limits,
}

/// How often a recording is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    One,
    /// Twice: first for the selected processes.
    ProcessesFirst,
}

/// The failure of reading one of the files.
fn failure(abouts: &[About], error: etl_analysis::Error) -> Failure {
    let file = error.file();
    let error = error.into_source();
    match abouts.get(file) {
        Some(about) => about.not_a_trace(&error),
        None => About::default().not_a_trace(&error),
    }
}

/// Notes that nothing was recorded at the selected time, if that is so.
fn note_empty_range(range: TimeRange, machine: &Machine) {
    let Some(Span { first, last }) = machine.span() else {
        return;
    };
    let is_after = range.from.is_some_and(|from| from.get() > last.get());
    let is_before = range.to.is_some_and(|to| to.get() <= first.get());
    if is_after || is_before {
        let clock = machine.clock();
        let first = clock.nanos_since_start(first) as f64 / 1e9;
        let last = clock.nanos_since_start(last) as f64 / 1e9;
        stderr_line!("note: nothing was recorded at this time, but from {first:.3} to {last:.3} s");
    }
}

/// Warns of traces that are not from the same machine and boot as the first trace.
fn warn_of_others<'h>(headers: impl IntoIterator<Item = &'h FileHeader>, names: &[String]) {
    let mut files = headers.into_iter().zip(names);
    let Some((first, name)) = files.next() else {
        return;
    };
    for (header, other) in files {
        let differences = files::machine_differences(first, header);
        if !differences.is_empty() {
            stderr_line!(
                "warning: {name} and {other} are not of one recording: {}",
                differences.join(", ")
            );
        }
    }
}

/// A progress bar over the records.
struct ShownProgress(Progress);

impl Observer for ShownProgress {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, _: &EventRef) {
        self.0.pass(record.bytes().len());
    }
}
