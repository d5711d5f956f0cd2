//! What the commands share that analyse traces: their arguments, and the pass over the traces as
//! one recording.

use std::collections::BTreeSet;
use std::path::PathBuf;

use etl_analysis::{
    Analysis, EventRef, Joins, Machine, Observer, ProcessIndex, ProcessLives, Recording,
    UnknownProcess, files,
};
use etl_format::read::Record;
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
    /// Trace to read; `-` is standard input. Several traces are read as one recording: those of the
    /// kernel's session and of the runtime's, for example
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Accepted as `etlkit verify` has it: several traces are read together in any case
    #[arg(long, hide = true)]
    together: bool,
    #[command(flatten)]
    pub processes: ProcessArgs,
    /// Select the thread with this id; may be repeated
    #[arg(long, value_name = "TID", value_parser = filter::thread_id)]
    pub thread: Vec<ThreadId>,
    /// Select what happened at or after TIME: seconds since the start (1.5), a duration since then
    /// (250ms), or UTC (2020-07-29T00:07:01Z)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// Select what happened before TIME
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// A recording that was read.
#[derive(Debug)]
pub(crate) struct Analyzed<O> {
    /// Names of the files.
    pub names: Vec<String>,
    pub machine: Machine,
    /// The indices of the selected processes; `None` where all are.
    pub selected: Option<BTreeSet<ProcessIndex>>,
    /// The selected time.
    pub range: TimeRange,
    pub observer: O,
    /// What the condition of the files is.
    pub outcome: Outcome,
}

/// When selected processes have their ids, and those of their threads that are theirs before an
/// event says so.
pub(crate) type SelectedProcesses = (ProcessLives, BTreeSet<ThreadId>);

impl RecordingArgs {
    /// Reads the recording with an observer for the selected time.
    pub fn analyze<O: Observer>(
        &self,
        observer: impl FnOnce(TimeRange) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        self.analyze_files(&self.files, observer)
    }

    /// Reads other files than those of the arguments as a recording, in the same way.
    pub fn analyze_files<O: Observer>(
        &self,
        files: &[PathBuf],
        observer: impl FnOnce(TimeRange) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        self.read(files, false, |span, _| observer(span))
    }

    /// As [`RecordingArgs::analyze`], for an observer that has to know the selected processes while
    /// it observes: if there are any, the recording is read for them before.
    pub fn analyze_selected<O: Observer>(
        &self,
        observer: impl FnOnce(TimeRange, Option<SelectedProcesses>) -> O,
    ) -> Result<Analyzed<O>, Failure> {
        self.read(&self.files, true, observer)
    }

    fn read<O: Observer>(
        &self,
        files: &[PathBuf],
        selects: bool,
        observer: impl FnOnce(TimeRange, Option<SelectedProcesses>) -> O,
    ) -> Result<Analyzed<O>, Failure> {
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
        let opened = files.iter().map(|file| Input::open(file, &share));
        let mut inputs = opened.collect::<Result<Vec<_>, _>>()?;
        let abouts: Vec<About> = inputs.iter().map(|input| input.about().clone()).collect();
        for input in &mut inputs {
            input.ensure_records()?;
        }
        let total = inputs.iter_mut().map(Input::size).sum();
        let failed = |error: etl_analysis::Error| {
            let file = error.file();
            abouts
                .get(file)
                .unwrap_or(&About::default())
                .not_a_trace(&error.into_source())
        };
        let names: Vec<String> = abouts.iter().map(|about| about.name.clone()).collect();
        let sources: Vec<_> = inputs
            .iter_mut()
            .map(Input::source)
            .zip(names.clone())
            .collect();
        let mut recording = Recording::open_within(sources, share.limits(total)).map_err(failed)?;
        warn_of_others(
            recording.files().iter().map(|file| file.trace.header()),
            &names,
        );
        let traces = recording.files().iter();
        let used: u64 = traces
            .flat_map(|file| file.trace.buffers())
            .map(|b| u64::from(b.fill))
            .sum();
        let mut selector = self.processes.selector();
        let selected = if selects && !selector.is_empty() {
            let machine = Analysis::new()
                .run_for_owners(&mut recording, &mut ())
                .map_err(failed)?;
            selector = selector
                .find_others(&machine, &mut recording)
                .map_err(failed)?;
            let lives = selector.lives(&machine);
            let selected = lives.and_then(|lives| Ok((lives, selector.first_threads(&machine)?)));
            Some(selected.map_err(|error| self.no_process(&error))?)
        } else {
            None
        };
        let range = self.range(&recording.timeline().clock())?;
        let observer = observer(range, selected);
        let mut observers = (observer, ShownProgress(Progress::new(used, false)));
        let analysis = Analysis::new()
            .names(true)
            .addresses(false)
            .threads(self.threads.count());
        let machine = analysis
            .run(&mut recording, &mut observers)
            .map_err(failed)?;
        let selected = if selector.is_empty() {
            None
        } else {
            let selector = selector
                .find_others(&machine, &mut recording)
                .map_err(failed)?;
            Some(
                selector
                    .select(&machine)
                    .map_err(|error| self.no_process(&error))?,
            )
        };
        note_empty_span(range, &machine);
        let mut outcome = Outcome::Success;
        for (file, facts) in recording.files().iter().zip(machine.files()) {
            let ranges = facts.damage.iter();
            let damage: Vec<_> = ranges.map(|range| range.damage.clone()).collect();
            let trace = &file.trace;
            let condition = Condition::new(trace.header(), &damage, trace.notes());
            outcome = outcome.max(condition.report(&file.name));
        }
        let (observer, progress) = observers;
        drop(progress);
        Ok(Analyzed {
            names,
            machine,
            selected,
            range,
            observer,
            outcome,
        })
    }

    /// Whether a part of the time is selected.
    pub fn has_span(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// The selected time.
    pub fn range(&self, clock: &Clock) -> Result<TimeRange, Failure> {
        filter::span(self.from.as_deref(), self.to.as_deref(), clock)
    }

    /// The failure that a selected process is not in the recording.
    fn no_process(&self, error: &UnknownProcess) -> Failure {
        let name = self
            .files
            .first()
            .map(|file| input::display(file))
            .unwrap_or_default();
        Failure::new(name, error.to_string()).hint(ProcessArgs::HINT)
    }
}

/// Says so if nothing was recorded at the selected time.
fn note_empty_span(range: TimeRange, machine: &Machine) {
    let Some(span) = machine.span() else {
        return;
    };
    let is_after = range.from.is_some_and(|from| from.get() > span.last.get());
    let is_before = range.to.is_some_and(|to| to.get() <= span.first.get());
    if is_after || is_before {
        let [first, last] = [span.first, span.last]
            .map(|time| machine.clock().nanos_since_start(time) as f64 / 1e9);
        stderr_line!("note: nothing was recorded at this time, but from {first:.3} to {last:.3} s");
    }
}

/// Warns of traces that are not of the same machine, since the same start of it, as the first one.
fn warn_of_others<'h>(mut headers: impl Iterator<Item = &'h FileHeader>, names: &[String]) {
    let (Some(first), Some((name, others))) = (headers.next(), names.split_first()) else {
        return;
    };
    for (header, other) in headers.zip(others) {
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
