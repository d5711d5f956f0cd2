//! From files to facts to a report.

use std::sync::mpsc;

use etl_format::Result;
use etl_format::read::{Helper, Mode, Options, OrderCheck, Ordered, Record, Source, Trace};
use etl_schema::tables::Profile;

use crate::facts::Facts;
use crate::facts::enable::Enabled;
use crate::facts::loss::{self, Surroundings};
use crate::facts::source::{Fault, Timeline};
use crate::facts::{AtOnce, Steps};
use crate::place;
use crate::policy::Policy;
use crate::report::Report;
use crate::rules;

/// What a judgement goes by besides the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How findings are weighed.
    pub policy: Policy,
    /// What the sessions were enabled with, as far as the user tells it.
    pub enabled: Vec<Enabled>,
    /// Threads that work on one trace: with two or more, one reads and another one judges. What is
    /// found does not depend on it. 0 counts as 1.
    pub threads: usize,
    /// Which tables payloads are compared with: those of the shipped runtimes, or of the pages.
    pub profile: Profile,
}

/// Reads a trace and judges it. `file` is the name that the report shows.
///
/// Damage does not end the reading: what can be read is judged, and the damage is a finding.
///
/// # Errors
/// When the bytes are no trace at all, or the medium fails.
pub fn verify<S: Source>(source: S, file: &str) -> Result<Report> {
    verify_with(source, file, &Settings::default(), |_| {})
}

/// As [`verify`], with settings; calls `watch` with every record before it is taken in, for showing
/// progress.
///
/// # Errors
/// As [`verify`].
pub fn verify_with<S: Source>(
    source: S,
    file: &str,
    settings: &Settings,
    watch: impl FnMut(&Record<'_>),
) -> Result<Report> {
    let reports = verify_together(vec![(source, file)], settings, watch).map_err(|(_, e)| e);
    reports.map(|report| Report { file: file.to_owned(), ..report })
}

/// Judges several files as one recording: their records are read side by side, in time order.
///
/// # Errors
/// As [`verify`], with the index of the file that could not be read.
pub fn verify_together<S: Source>(
    mut sources: Vec<(S, &str)>,
    settings: &Settings,
    mut watch: impl FnMut(&Record<'_>),
) -> std::result::Result<Report, (usize, etl_format::Error)> {
    let mut traces = open(&mut sources)?;
    let facts = gather(&mut traces, settings, false, &mut watch)?;
    let mut judgement = rules::judge(&facts, &settings.policy);
    place::find(&mut traces, &facts, &mut judgement.findings)?;
    Ok(Report::new(&facts, judgement))
}

/// A trace that is judged, and the name that the report has for it.
pub(crate) type Named<'n, S> = (Trace<S>, &'n str);

/// Finds the buffers of the traces. How far readers look ahead is for [`gather`] to say.
pub(crate) fn open<'s, 'n, S: Source>(
    sources: &'s mut [(S, &'n str)],
) -> std::result::Result<Vec<Named<'n, &'s mut S>>, (usize, etl_format::Error)> {
    let options = Options { mode: Mode::Salvage, ..Options::default() };
    let trace = |(index, (source, name)): (usize, &'s mut (S, &'n str))| {
        Ok((Trace::open(source, &options).map_err(|e| (index, e))?, *name))
    };
    sources.iter_mut().enumerate().map(trace).collect()
}

/// What the files say, in as many passes as it takes; `names` keeps what things are called.
pub(crate) fn gather<S: Source>(
    traces: &mut [Named<'_, S>],
    settings: &Settings,
    names: bool,
    watch: &mut impl FnMut(&Record<'_>),
) -> std::result::Result<Facts, (usize, etl_format::Error)> {
    // Windows writes buffers in order, so the quick check nearly always does; only where something
    // came too late are the traces read again with every record looked at first.
    let (facts, late) = attempt(traces, OrderCheck::Ahead, settings, names, watch)?;
    if late {
        return Ok(attempt(traces, OrderCheck::Full, settings, names, watch)?.0);
    }
    Ok(facts)
}

/// One pass, and whether records came out of order, which only [`OrderCheck::Ahead`] lets happen: the
/// facts are not worth anything then.
fn attempt<S: Source>(
    traces: &mut [Named<'_, S>],
    order: OrderCheck,
    settings: &Settings,
    names: bool,
    watch: &mut impl FnMut(&Record<'_>),
) -> std::result::Result<(Facts, bool), (usize, etl_format::Error)> {
    let timeline = Timeline::new(traces.iter().map(|(trace, _)| trace.clock()).collect());
    let mut facts = Facts::new(timeline.clone(), &settings.enabled).with_tables(settings.profile);
    if names {
        facts.keep_names();
    }
    let mut buffers = Vec::new();
    for (trace, name) in traces.iter() {
        facts.file(trace, name);
        // Only damage is placed among them.
        buffers.push(Surroundings::new(trace.buffers()));
    }
    let mut readers = Vec::new();
    for (index, (trace, _)) in traces.iter_mut().enumerate() {
        trace.set_order(order);
        readers.push(trace.ordered().map_err(|e| (index, e))?);
    }
    match readers.as_mut_slice() {
        [reader] if settings.threads > 1 => {
            let facts = &mut facts;
            // Those beyond two decompress buffers.
            let read = reader.with_helper(settings.threads - 1, |reader, helper| {
                side_by_side(reader, &helper, facts, &timeline, watch)
            });
            read.map_err(|e| (0, e))?;
        }
        [reader] => {
            let mut seen = facts.take_seen();
            let mut follow = AtOnce { facts: &mut facts, source: 0 };
            loop {
                // By hand: a record that goes through an error's conversion is copied on the way.
                let record = match reader.next_record() {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => return Err((0, error)),
                };
                watch(&record);
                seen.record(&record, timeline.timestamp(0, record.timestamp()), &mut follow);
            }
            facts.give_back(seen);
        }
        readers => in_step(readers, &timeline, |record, source| {
            watch(record);
            facts.record(record, source);
        })?,
    }
    if order == OrderCheck::Ahead && readers.iter().any(|r| r.report().late > 0) {
        return Ok((facts, true));
    }
    for (source, (reader, buffers)) in readers.iter().zip(&buffers).enumerate() {
        if let Some(file) = facts.files.get_mut(source) {
            file.disordered = reader.report().sorted_buffers;
        }
        for damage in reader.damage() {
            let at = |raw| timeline.timestamp(source, raw);
            let loss = loss::of_damage(damage, buffers, source, at);
            let processor = loss.processor;
            facts.losses.push(loss);
            if let Some(file) = facts.files.get_mut(source) {
                file.faults.push(Fault {
                    code: damage.error.code().to_owned(),
                    offset: damage.range.start,
                    message: damage.error.kind.to_string(),
                    processor,
                });
            }
        }
    }
    facts.finish();
    Ok((facts, false))
}

/// Bytes of steps that are handed over at a time.
const BATCH: usize = 1 << 17;
/// Batches that are waiting to be judged: so many that neither thread has to wait for the other as long as the work
/// for them is not always one's.
const WAITING: usize = 48;

/// Reads a trace on this thread, and finds out on another one whose the addresses are. What has nothing to
/// do with addresses is looked at by the one that reads; the other one helps it to find records while there
/// is nothing else to do, so that both are busy whatever the trace is made of.
fn side_by_side<S: Source>(
    reader: &mut Ordered<S>,
    helper: &Helper<S::Block>,
    facts: &mut Facts,
    timeline: &Timeline,
    watch: &mut impl FnMut(&Record<'_>),
) -> Result<()> {
    let (send, take) = mpsc::sync_channel::<Steps>(WAITING);
    let (give_back, free) = mpsc::channel::<Steps>();
    let mut seen = facts.take_seen();
    let mut follow = AtOnce { facts: &mut *facts, source: 0 };
    let read = std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(mut steps) = next_steps(&take, helper) {
                steps.follow(&mut follow);
                steps.clear();
                // Nobody waits for the last ones.
                give_back.send(steps).ok();
            }
        });
        // Moved in, so that it goes when the reading ends, however it does.
        let send = send;
        let mut steps = Steps::default();
        while let Some(record) = reader.next_record()? {
            watch(&record);
            seen.record(&record, timeline.timestamp(0, record.timestamp()), &mut steps);
            if steps.bytes() >= BATCH {
                let next = free.try_recv().unwrap_or_default();
                // The other thread only goes when it panics; then the scope does so, too.
                send.send(std::mem::replace(&mut steps, next)).ok();
            }
        }
        send.send(steps).ok();
        Ok(())
    });
    facts.give_back(seen);
    read
}

/// The next steps to follow, at the end none; helps the one that makes them in the meantime.
fn next_steps<B: AsRef<[u8]>>(take: &mpsc::Receiver<Steps>, helper: &Helper<B>) -> Option<Steps> {
    loop {
        match take.try_recv() {
            Ok(steps) => return Some(steps),
            Err(mpsc::TryRecvError::Disconnected) => return None,
            Err(mpsc::TryRecvError::Empty) if helper.help() => {}
            Err(mpsc::TryRecvError::Empty) => return take.recv().ok(),
        }
    }
}

/// Reads several traces side by side: always the one whose next record is due first.
fn in_step<S: Source>(
    readers: &mut [Ordered<S>],
    timeline: &Timeline,
    mut take: impl FnMut(&Record<'_>, usize),
) -> std::result::Result<(), (usize, etl_format::Error)> {
    let mut due = Vec::new();
    for (index, reader) in readers.iter_mut().enumerate() {
        due.push(reader.next_timestamp().map_err(|e| (index, e))?);
    }
    loop {
        let next = due.iter().enumerate().filter_map(|(index, timestamp)| {
            Some((timeline.timestamp(index, (*timestamp)?), index))
        });
        let Some((_, index)) = next.min() else { return Ok(()) };
        let (Some(reader), Some(due)) = (readers.get_mut(index), due.get_mut(index)) else {
            return Ok(());
        };
        if let Some(record) = reader.next_record().map_err(|e| (index, e))? {
            take(&record, index);
        }
        *due = reader.next_timestamp().map_err(|e| (index, e))?;
    }
}
