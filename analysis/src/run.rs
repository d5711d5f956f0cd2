//! One pass over the files of a recording, in time order.

use etl_format::Ticks;
use etl_format::read::{Limits, Mode, Options, Order, OrderCheck, Record, Records, Source, Trace};

use crate::files::{DamagedRange, Timeline};
use crate::join::{Joiner, event_of};
use crate::loss::{self, Passed, Surroundings};
use crate::machine::Machine;
use crate::machine::StateObserver;
use crate::observe::{Joins, Observer, RecordObserver};
use crate::scan::Scan;
use crate::steps::StepBatch;
use crate::{Error, Result};

/// One or several files that are read as one recording: the runtime session's and the rundown's,
/// for example, that have not been merged.
///
/// ```no_run
/// use std::fs::File;
///
/// use etl_analysis::Recording;
/// use etl_format::read::FileSource;
///
/// let mut files = Vec::new();
/// for name in ["kernel.etl", "clr.etl"] {
///     files.push((FileSource::new(File::open(name)?)?, name));
/// }
/// let recording = Recording::open(files)?;
/// for file in recording.files() {
///     println!("{}: {} buffers", file.name, file.trace.buffers().len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Recording<S: Source> {
    files: Vec<RecordingFile<S>>,
}

/// A file of a [`Recording`].
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordingFile<S: Source> {
    /// Its trace.
    pub trace: Trace<S>,
    /// Its name for reports and errors.
    pub name: String,
}

impl<S: Source> Recording<S> {
    /// Opens files and finds their buffers. Each file has a name for reports and errors. Damage is
    /// not an error.
    ///
    /// # Errors
    /// When a file is not a trace, or cannot be read.
    pub fn open<N: Into<String>>(files: impl IntoIterator<Item = (S, N)>) -> Result<Self> {
        Self::open_within(files, Limits::default())
    }

    /// As [`Recording::open`], with bounds on the memory for the buffers of each file.
    ///
    /// # Errors
    /// As [`Recording::open`]. A trace that needs more memory is refused while it is read.
    pub fn open_within<N: Into<String>>(
        files: impl IntoIterator<Item = (S, N)>,
        limits: Limits,
    ) -> Result<Self> {
        let options = Options {
            mode: Mode::Salvage,
            limits,
            ..Options::default()
        };
        let mut opened = Vec::new();
        for (index, (source, name)) in files.into_iter().enumerate() {
            let name = name.into();
            match Trace::open(source, &options) {
                Ok(trace) => opened.push(RecordingFile { trace, name }),
                Err(error) => return Err(Error::new(index, &name, error)),
            }
        }
        Ok(Recording { files: opened })
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[RecordingFile<S>] {
        &self.files
    }

    /// The files, to read some of their records again.
    pub fn files_mut(&mut self) -> &mut [RecordingFile<S>] {
        &mut self.files
    }

    /// Checks the memory budget of the limits: what is computed after the reading takes memory as
    /// well.
    ///
    /// # Errors
    /// When the budget is exceeded.
    pub fn check_memory(&self) -> Result<()> {
        let Some(file) = self.files.last() else {
            return Ok(());
        };
        let last = file.trace.buffers().last();
        let end = last.map_or(0, |last| last.offset + u64::from(last.stored));
        let limits = &file.trace.options().limits;
        limits
            .check(end)
            .map_err(|error| Error::new(self.files.len() - 1, &file.name, error))
    }

    /// How the times of the files become times of the recording.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        Timeline::new(self.files.iter().map(|file| file.trace.clock()).collect())
    }
}

/// Reads a recording into a [`Machine`].
///
/// Writes a trace in memory and reads it. For a recorded trace, use `std::fs::read`:
///
/// ```
/// use etl_analysis::{Analysis, Recording};
/// use etl_format::{FileHeader, FileTime};
/// use etl_format::write::Session;
///
/// let header = FileHeader::starting_at(FileTime::new(132_000_000_000_000_000));
/// let bytes = Session::in_memory(header)?.finish()?;
///
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let machine = Analysis::new().with_names().threads(2).run(&mut recording, &mut ())?;
/// assert_eq!(machine.records(), 1, "the header event is the only record");
/// assert!(machine.losses().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    threads: usize,
    names: bool,
    stale: bool,
    without_addresses: bool,
}

impl Analysis {
    /// One thread, without names.
    #[must_use]
    pub fn new() -> Self {
        Analysis::default()
    }

    /// The number of threads that work on a recording of one file: with two or more, one reads and
    /// another keeps the machine. The result does not depend on it. 0 means 1.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Analysis { threads, ..self }
    }

    /// The machine keeps the names of methods, modules, assemblies, domains and images: about 100
    /// bytes for each, and each text once.
    #[must_use]
    pub fn with_names(self) -> Self {
        Analysis {
            names: true,
            ..self
        }
    }

    /// Also reads stale records ([`Record::is_stale`]), which are copies of other records of the
    /// trace.
    #[must_use]
    pub fn with_stale_records(self) -> Self {
        Analysis {
            stale: true,
            ..self
        }
    }

    /// Does not count the addresses of samples and stacks by their owners ([`Machine::tallies`],
    /// [`Machine::unresolved`]). If most addresses differ, counting takes about as long as all
    /// other work.
    #[must_use]
    pub fn without_addresses(self) -> Self {
        Analysis {
            without_addresses: true,
            ..self
        }
    }

    /// Reads all records of a recording in time order, and shows them to `observer`. Damage does
    /// not end the reading.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn run<S: Source, O: Observer>(
        &self,
        recording: &mut Recording<S>,
        observer: &mut O,
    ) -> Result<Machine> {
        let machine = self.read(recording, |pass, readers| {
            if pass.is_second {
                observer.restart();
            }
            let Pass {
                timeline,
                scan,
                machine,
                ..
            } = pass;
            let mut joiner = Joiner::default();
            let mut number = 0;
            machine.changes = Some(Vec::new());
            let mut losses = Passed::new(machine.losses());
            let read = each_record(readers, timeline, |record, file, time| {
                while let Some(loss) = losses.until(time) {
                    observer.loss(&loss);
                }
                scan.record(record, time, &mut (), machine.sink(file, &mut ()));
                let event = event_of(record, number, file, time, machine);
                number += 1;
                observer.record(machine, record, &event);
                // Nearly all records change nothing.
                if let Some(mut changes) = machine.changes.take_if(|changes| !changes.is_empty()) {
                    for change in &changes {
                        observer.change(machine, change, &event);
                    }
                    changes.clear();
                    machine.changes = Some(changes);
                }
                if O::JOINS > Joins::Nothing {
                    joiner.record(record, event, timeline, machine, observer);
                }
            });
            joiner.finish(machine, observer);
            machine.changes = None;
            read
        })?;
        observer.finish(&machine);
        Ok(machine)
    }

    /// As [`Analysis::run`], for observers that need neither records together with the machine nor
    /// joined stacks. With two or more threads, `records` runs on the thread that reads, and
    /// `state` on the thread that keeps the machine.
    ///
    /// # Errors
    /// As [`Analysis::run`].
    #[doc(hidden)]
    pub fn run_split<S: Source>(
        &self,
        recording: &mut Recording<S>,
        records: &mut impl RecordObserver,
        state: &mut (impl StateObserver + Send),
    ) -> Result<Machine> {
        self.read(recording, |pass, readers| {
            if pass.is_second {
                records.restart();
                state.restart();
            }
            let Pass {
                timeline,
                scan,
                machine,
                ..
            } = pass;
            if let ([reader], 2..) = (&mut *readers, self.threads) {
                let read = reader.pipeline(
                    |record, batch: &mut StepBatch| {
                        let time = timeline.timestamp(0, record.timestamp());
                        records.record(record, 0);
                        scan.record(record, time, records, &mut *batch);
                        batch.bytes() >= BATCH
                    },
                    |batch| batch.drain(|step, time| machine.apply(step, time, 0, state)),
                );
                return read.map_err(|error| ReadFailure::new(0, error));
            }
            // Each loop has a closure of its own, so that both are compiled into their loops.
            if let [reader] = readers {
                return each_record_of(reader, timeline, |record, time| {
                    records.record(record, 0);
                    scan.record(record, time, records, machine.sink(0, state));
                });
            }
            each_record(readers, timeline, |record, file, time| {
                records.record(record, file);
                scan.record(record, time, records, machine.sink(file, state));
            })
        })
    }

    /// Windows writes buffers in order, so the quick check is nearly always sufficient. Only if a
    /// record came too late, the files are read again, with every record looked at first.
    pub(crate) fn read<S: Source>(
        &self,
        recording: &mut Recording<S>,
        mut pass: impl FnMut(Pass<'_>, &mut [Records<&mut S>]) -> ReadResult,
    ) -> Result<Machine> {
        for order_check in [OrderCheck::Lookahead, OrderCheck::Scan] {
            if let Some(machine) = self.pass(recording, order_check, &mut pass)? {
                return Ok(machine);
            }
        }
        Ok(Machine::new(recording.timeline(), self.names))
    }

    /// One pass. Returns `None` if records came out of order, which only [`OrderCheck::Lookahead`]
    /// lets happen.
    fn pass<S: Source>(
        &self,
        recording: &mut Recording<S>,
        order_check: OrderCheck,
        pass: &mut impl FnMut(Pass<'_>, &mut [Records<&mut S>]) -> ReadResult,
    ) -> Result<Option<Machine>> {
        let timeline = recording.timeline();
        let mut machine = Machine::new(timeline.clone(), self.names);
        if self.without_addresses {
            machine = machine.without_addresses();
        }
        let mut names = Vec::new();
        let mut surroundings = Vec::new();
        for file in &recording.files {
            machine.add_file(&file.trace, &file.name);
            names.push(file.name.clone());
            surroundings.push(Surroundings::new(file.trace.buffers()));
        }
        machine.add_gaps();
        let mut readers = self.readers(recording, order_check)?;
        let mut scan = Scan::new(self.names);
        let is_second = order_check == OrderCheck::Scan;
        let context = Pass {
            timeline: &timeline,
            scan: &mut scan,
            machine: &mut machine,
            is_second,
        };
        pass(context, &mut readers).map_err(|failure| {
            let name = names.get(failure.file).map_or("", String::as_str);
            Error::new(failure.file, name, failure.error)
        })?;
        machine.set_totals(scan.records, scan.kernel_span, scan.other_span);
        if !is_second && readers.iter().any(|reader| reader.report().late > 0) {
            return Ok(None);
        }
        machine.is_ordered = !is_second;
        for (source, (reader, buffers)) in readers.iter().zip(&surroundings).enumerate() {
            machine.add_report(source, reader, buffers);
        }
        drop(readers);
        // Deciding what is open takes memory as well.
        recording.check_memory()?;
        machine.finish();
        recording.check_memory()?;
        Ok(Some(machine))
    }

    /// Readers of the files in time order.
    fn readers<'r, S: Source>(
        &self,
        recording: &'r mut Recording<S>,
        order_check: OrderCheck,
    ) -> Result<Vec<Records<&'r mut S>>> {
        let mut readers = Vec::new();
        for (index, file) in recording.files.iter_mut().enumerate() {
            let RecordingFile { trace, name } = file;
            trace.set_order_check(order_check);
            let reader = match trace.records(Order::Time) {
                Ok(reader) => reader.with_threads(self.threads),
                Err(error) => return Err(Error::new(index, name, error)),
            };
            readers.push(if self.stale {
                reader
            } else {
                reader.without_stale_records()
            });
        }
        Ok(readers)
    }
}

impl Machine {
    /// Adds what the reader of a file found: the order of its records, and damage, which is located
    /// by the buffers around it.
    fn add_report<S: Source>(
        &mut self,
        source: usize,
        reader: &Records<S>,
        buffers: &Surroundings,
    ) {
        let session = self.session_of(source);
        let Some(file) = self.files.get_mut(source) else {
            return;
        };
        let report = reader.report();
        file.disordered = report.sorted_buffers;
        file.overlaps = report.overlaps;
        for damage in reader.damage() {
            let loss = loss::of_damage(damage, buffers, source, session, &self.timeline);
            self.losses.push(loss);
            file.damage.push(DamagedRange {
                damage: damage.clone(),
                processor: loss.processor,
            });
        }
    }
}

/// A file that could not be read.
pub(crate) struct ReadFailure {
    /// Index of the file.
    file: usize,
    error: etl_format::Error,
}

impl ReadFailure {
    /// The failure to read a file, by its index.
    fn new(file: usize, error: etl_format::Error) -> Self {
        ReadFailure { file, error }
    }
}

/// The result of reading.
pub(crate) type ReadResult = std::result::Result<(), ReadFailure>;

/// What a pass over the files works with.
pub(crate) struct Pass<'p> {
    pub(crate) timeline: &'p Timeline,
    scan: &'p mut Scan,
    pub(crate) machine: &'p mut Machine,
    /// Whether the records came out of order in the first pass.
    pub(crate) is_second: bool,
}

/// Keeps a [`Machine`] of records that the caller reads: all of a trace or some of them, in time
/// order. No addresses are counted.
///
/// ```no_run
/// use etl_analysis::files::Timeline;
/// use etl_analysis::MachineBuilder;
/// use etl_format::read::{Options, Order, Trace};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut builder = MachineBuilder::new(Timeline::new(vec![trace.clock()]));
/// let mut records = trace.records(Order::Time)?;
/// while let Some(record) = records.next_record()? {
///     builder.record(&record, 0, &mut ());
/// }
/// println!("{} processes", builder.build().processes().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MachineBuilder {
    machine: Machine,
    scan: Scan,
}

impl MachineBuilder {
    /// A machine without processes and names.
    #[must_use]
    pub fn new(timeline: Timeline) -> Self {
        MachineBuilder {
            machine: Machine::new(timeline, false).without_addresses(),
            scan: Scan::new(false),
        }
    }

    /// Changes the machine by the next record of a file, by its index in the recording.
    pub fn record(&mut self, record: &Record<'_>, file: usize, observer: &mut impl StateObserver) {
        let MachineBuilder { machine, scan } = self;
        let time = machine.timeline().timestamp(file, record.timestamp());
        scan.record(record, time, &mut (), machine.sink(file, observer));
    }

    /// The machine at this time.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine at the end of the records.
    #[must_use]
    pub fn build(self) -> Machine {
        let MachineBuilder { mut machine, scan } = self;
        machine.set_totals(scan.records, scan.kernel_span, scan.other_span);
        machine.finish();
        machine
    }
}

/// Bytes of steps that are handed over at a time.
const BATCH: usize = 1 << 17;

/// Reads a trace in time order. `take` gets each record with its time.
pub(crate) fn each_record_of<S: Source>(
    reader: &mut Records<S>,
    timeline: &Timeline,
    mut take: impl FnMut(&Record<'_>, Ticks),
) -> ReadResult {
    loop {
        // By reference: a record that is moved out of the result is copied.
        let next = reader.next_record();
        let Ok(Some(record)) = &next else {
            return next.map(|_| ()).map_err(|error| ReadFailure::new(0, error));
        };
        take(record, timeline.timestamp(0, record.timestamp()));
    }
}

/// Reads traces in time order: always the trace whose next record is due first. `take` gets each
/// record with the index of its file and its time.
pub(crate) fn each_record<S: Source>(
    readers: &mut [Records<S>],
    timeline: &Timeline,
    mut take: impl FnMut(&Record<'_>, usize, Ticks),
) -> ReadResult {
    let is_alone = readers.len() == 1;
    // The time of the next record of each file; `None` at its end. Not needed for a single file.
    let mut due = Vec::new();
    if !is_alone {
        for (index, reader) in readers.iter_mut().enumerate() {
            due.push(next_time(reader, index, timeline)?);
        }
    }
    loop {
        let next = if is_alone { Some(0) } else { earliest(&due) };
        let Some(index) = next else {
            return Ok(());
        };
        let Some(reader) = readers.get_mut(index) else {
            return Ok(());
        };
        let record = reader.next_record();
        match record.map_err(|error| ReadFailure::new(index, error))? {
            Some(record) => {
                let time = timeline.timestamp(index, record.timestamp());
                take(&record, index, time);
            }
            None if is_alone => return Ok(()),
            None => {}
        }
        if let Some(due) = due.get_mut(index) {
            *due = next_time(reader, index, timeline)?;
        }
    }
}

/// The time of the next record of a file, by its index; `None` at its end.
fn next_time<S: Source>(
    reader: &mut Records<S>,
    file: usize,
    timeline: &Timeline,
) -> std::result::Result<Option<Ticks>, ReadFailure> {
    let next = reader.next_timestamp();
    let next = next.map_err(|error| ReadFailure::new(file, error))?;
    Ok(next.map(|timestamp| timeline.timestamp(file, timestamp)))
}

/// The index of the earliest time. If several are equal, returns the first.
fn earliest(times: &[Option<Ticks>]) -> Option<usize> {
    let mut earliest: Option<(Ticks, usize)> = None;
    for (index, time) in times.iter().enumerate() {
        if let Some(time) = *time
            && earliest.is_none_or(|(earliest, _)| time < earliest)
        {
            earliest = Some((time, index));
        }
    }
    earliest.map(|(_, index)| index)
}
