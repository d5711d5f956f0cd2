//! From files to facts to a report.

use std::sync::mpsc;

use etl_format::Result;
use etl_format::read::{Mode, Options, OrderCheck, Ordered, Record, Source, Trace};
use etl_schema::tables::Profile;

use crate::facts::Facts;
use crate::facts::enable::Enabled;
use crate::facts::loss::{self, Surroundings};
use crate::facts::source::{Fault, Timeline};
use crate::facts::{AtOnce, Follow, Later, Steps};
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
    let facts = gather(&mut sources, settings, false, &mut watch)?;
    let mut judgement = rules::judge(&facts, &settings.policy);
    place::find(&mut sources, &facts, &mut judgement.findings)?;
    Ok(Report::new(&facts, judgement))
}

/// What the files say, in as many passes as it takes; `names` keeps what things are called.
pub(crate) fn gather<S: Source>(
    sources: &mut [(S, &str)],
    settings: &Settings,
    names: bool,
    watch: &mut impl FnMut(&Record<'_>),
) -> std::result::Result<Facts, (usize, etl_format::Error)> {
    // Windows writes buffers in order, so the quick check nearly always does; only where something
    // came too late are the traces read again with every record looked at first.
    let (facts, late) = attempt(sources, OrderCheck::Ahead, settings, names, watch)?;
    if late {
        return Ok(attempt(sources, OrderCheck::Full, settings, names, watch)?.0);
    }
    Ok(facts)
}

/// One pass, and whether records came out of order, which only [`OrderCheck::Ahead`] lets happen: the
/// facts are not worth anything then.
fn attempt<S: Source>(
    sources: &mut [(S, &str)],
    order: OrderCheck,
    settings: &Settings,
    names: bool,
    watch: &mut impl FnMut(&Record<'_>),
) -> std::result::Result<(Facts, bool), (usize, etl_format::Error)> {
    let options = Options { mode: Mode::Salvage, order, ..Options::default() };
    let mut traces = Vec::new();
    for (index, (source, name)) in sources.iter_mut().enumerate() {
        traces.push((Trace::open(source, &options).map_err(|e| (index, e))?, *name));
    }
    let timeline = Timeline::new(traces.iter().map(|(trace, _)| trace.clock()).collect());
    let mut facts = Facts::new(timeline.clone(), &settings.enabled).with_tables(settings.profile);
    if names {
        facts.keep_names();
    }
    let mut buffers = Vec::new();
    // Whether the trace is compressed for the most part.
    let mut packed = false;
    for (trace, name) in &traces {
        let compressed = trace.buffers().iter().filter(|b| b.compressed).count();
        packed = compressed > trace.buffers().len() / 2;
        facts.file(trace, name);
        // Only damage is placed among them.
        buffers.push(Surroundings::new(trace.buffers()));
    }
    let mut readers = Vec::new();
    for (index, (trace, _)) in traces.iter_mut().enumerate() {
        readers.push(trace.ordered().map_err(|e| (index, e))?);
    }
    match readers.as_mut_slice() {
        [reader] if settings.threads > 1 => {
            // Those beyond two decompress buffers.
            let share = !packed || settings.threads > 2;
            let facts = &mut facts;
            let read =
                |reader: &mut Ordered<_>| side_by_side(reader, facts, &timeline, share, watch);
            reader.with_threads(settings.threads - 1, read).map_err(|e| (0, e))?;
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
                seen.record(&record, timeline.stamp(0, record.stamp()), &mut follow);
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
            let at = |raw| timeline.stamp(source, raw);
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
const WAITING: usize = 6;

/// Reads a trace on this thread, and finds out on another one whose the addresses are. What has nothing to
/// do with addresses is looked at by the one that reads, if it is to have a `share` in the work: where it
/// decompresses alone, it has enough to do.
fn side_by_side<S: Source>(
    reader: &mut Ordered<S>,
    facts: &mut Facts,
    timeline: &Timeline,
    share: bool,
    watch: &mut impl FnMut(&Record<'_>),
) -> Result<()> {
    let (send, take) = mpsc::sync_channel::<Steps>(WAITING);
    let (give_back, free) = mpsc::channel::<Steps>();
    let mut seen = facts.take_seen();
    let mut follow = AtOnce { facts: &mut *facts, source: 0 };
    let (mut here, mut there) =
        if share { (Some(&mut seen), None) } else { (None, Some(&mut seen)) };
    // `send` is moved in, so that it goes when the reading ends, however it does.
    let read = std::thread::scope(move |scope| {
        scope.spawn(move || {
            for mut steps in take {
                match &mut there {
                    Some(seen) => steps.follow(&mut Later { seen, follow: &mut follow }),
                    None => steps.follow(&mut follow),
                }
                steps.clear();
                // Nobody waits for the last ones.
                give_back.send(steps).ok();
            }
        });
        let mut steps = Steps::default();
        while let Some(record) = reader.next_record()? {
            watch(&record);
            let stamp = timeline.stamp(0, record.stamp());
            match &mut here {
                Some(seen) => seen.record(&record, stamp, &mut steps),
                None => steps.record(&record, stamp),
            }
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

/// Reads several traces side by side: always the one whose next record is due first.
fn in_step<S: Source>(
    readers: &mut [Ordered<S>],
    timeline: &Timeline,
    mut take: impl FnMut(&Record<'_>, usize),
) -> std::result::Result<(), (usize, etl_format::Error)> {
    let mut due = Vec::new();
    for (index, reader) in readers.iter_mut().enumerate() {
        due.push(reader.next_stamp().map_err(|e| (index, e))?);
    }
    loop {
        let next = due
            .iter()
            .enumerate()
            .filter_map(|(index, stamp)| Some((timeline.stamp(index, (*stamp)?), index)));
        let Some((_, index)) = next.min() else { return Ok(()) };
        let (Some(reader), Some(due)) = (readers.get_mut(index), due.get_mut(index)) else {
            return Ok(());
        };
        if let Some(record) = reader.next_record().map_err(|e| (index, e))? {
            take(&record, index);
        }
        *due = reader.next_stamp().map_err(|e| (index, e))?;
    }
}
