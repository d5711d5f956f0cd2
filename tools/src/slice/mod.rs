//! Cutting a piece out of a trace, with everything the piece needs.
//!
//! # The rule
//! An event is **selected** when the caller's condition admits it. With it go the stacks that were
//! logged for it: kernel stacks (which name the event by time and thread) and the CLR's stack event
//! behind an event of the CLR on the same thread. A stack that the condition itself admits is
//! selected as well.
//!
//! With [`Slicer::keep_state`], a record that is not selected is kept where selected ones need it
//! to be decoded or resolved, wherever in the trace it stands, since a rundown at the end tells of
//! code that ran at the beginning. See [`Why`] for the kinds; `docs/slice.md` has the whole rule.
//!
//! What resolved before the cut resolves after it: whatever a reader that goes through the whole
//! trace knows of the processes, threads, modules and schemas of the selected events, it knows from
//! the slice.
//!
//! The trace is read twice, once for what is needed and once to write. Memory grows with processes,
//! threads, stack keys and providers, each up to 2^20 (beyond, everything of the kind is kept), and
//! with the 2^20 latest selected events.

mod moments;
mod needs;
mod subject;

pub use needs::Why;
pub(crate) use needs::is_clr_stack;
pub use subject::Subject;

use std::collections::HashMap;

use etl_format::compress::Effort;
use etl_format::constants::{BUFFER_HEADER_SIZE, CompressionFormat};
use etl_format::read::{Damage, Record, Source, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_format::write::Output;

use crate::compression::{self, Compression};
use crate::{Error, OnRecord, Result};
use moments::Moments;
use needs::{Needs, is_clr};
use subject::{Kernel, Threads};

/// Selected events that are remembered for their stacks.
const MOMENTS: usize = 1 << 20;

/// Threads whose last event of the CLR is remembered.
const MOST_THREADS: usize = 1 << 20;

/// The result of a cut.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Records of the source, its header event left out.
    pub records: u64,
    /// Records that were selected, their stacks included.
    pub selected: u64,
    /// Records that are kept because selected ones need them, by [`Why::ALL`].
    pub state: [u64; Why::ALL.len()],
    /// Damage of the source, around which it was read.
    pub damage: Vec<Damage>,
}

impl Summary {
    /// All records that are kept for others.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.state.iter().sum()
    }
}

/// Cuts a piece out of a trace.
#[derive(Debug)]
pub struct Slicer<'f> {
    keep_state: bool,
    compression: Compression,
    on_record: OnRecord<'f>,
}

impl Default for Slicer<'_> {
    fn default() -> Self {
        Slicer { keep_state: true, compression: None, on_record: OnRecord::default() }
    }
}

impl<'f> Slicer<'f> {
    /// A slicer that keeps what the selected events need, and does not compress.
    #[must_use]
    pub fn new() -> Self {
        Slicer::default()
    }

    /// Whether records are kept that the selected events need. Default: true.
    #[must_use]
    pub fn keep_state(mut self, on: bool) -> Self {
        self.keep_state = on;
        self
    }

    /// Compresses the new trace, on as many threads as the options of the source trace have.
    #[must_use]
    pub fn compression(mut self, with: impl Into<Option<(CompressionFormat, Effort)>>) -> Self {
        self.compression = with.into();
        self
    }

    /// Calls `f` for every record that is read: twice where state is kept.
    #[must_use]
    pub fn on_record(mut self, f: impl FnMut(&Record<'_>) + 'f) -> Self {
        self.on_record = OnRecord::new(f);
        self
    }

    /// Writes the slice. `select` decides which records are selected; it is called twice for a
    /// record where state is kept, and must return the same both times.
    ///
    /// # Errors
    /// Errors of reading and writing, with the side.
    pub fn run<S: Source, O: Output>(
        mut self,
        trace: &mut Trace<S>,
        mut select: impl FnMut(&Record<'_>, &Subject) -> bool,
        output: O,
    ) -> Result<(O, Summary)> {
        let needs = match self.keep_state {
            true => Some(gather(trace, &mut select, &mut self.on_record)?),
            false => None,
        };
        let threads = trace.options().threads;
        let plan = RelogPlan::copying(trace)?;
        let compressor = compression::compressor(self.compression, threads)?;
        let mut relog = Relogger::start(plan, output, compressor).map_err(Error::output)?;
        let threads = relog.reading_threads(threads);
        let mut records = trace.ordered()?;
        let mut chooser = Chooser::default();
        let mut summary = Summary::default();
        records.with_threads(threads, |records| {
            while let Some(record) = records.next_record()? {
                self.on_record.call(&record);
                // The header event is written from its fields, whatever is selected.
                if relog.is_written(&record)
                    && record.location().in_buffer as usize == BUFFER_HEADER_SIZE
                {
                    continue;
                }
                summary.records += 1;
                let chosen = chooser.look(&record, &mut select);
                if chosen.selected {
                    summary.selected += 1;
                } else {
                    let kernel = chosen.kernel.as_ref();
                    let why = needs.as_ref().and_then(|n| n.why(&record, kernel, &chosen.subject));
                    // The records beside the header event stay in its buffer.
                    let why = why.or(relog.is_written(&record).then_some(Why::System));
                    let Some(why) = why else {
                        relog.skip(&record).map_err(Error::output)?;
                        continue;
                    };
                    if let Some(count) = summary.state.get_mut(why as usize) {
                        *count += 1;
                    }
                }
                relog.copy(&record).map_err(Error::output)?;
            }
            Ok::<_, Error>(())
        })?;
        summary.damage = records.damage().to_vec();
        let (output, _) = relog.finish().map_err(Error::output)?;
        Ok((output, summary))
    }
}

/// The first pass: what the selected events need.
fn gather<S: Source>(
    trace: &mut Trace<S>,
    select: &mut impl FnMut(&Record<'_>, &Subject) -> bool,
    on_record: &mut OnRecord<'_>,
) -> etl_format::Result<Needs> {
    let mut needs = Needs::default();
    let mut chooser = Chooser::default();
    let threads = trace.options().threads;
    trace.ordered()?.with_threads(threads, |records| {
        records.for_each(|record| {
            on_record.call(&record);
            let chosen = chooser.look(&record, select);
            if let Some((thread, process)) = chosen.witness {
                needs.witness(thread, process, record.location());
            }
            if let Some(kernel) = &chosen.kernel
                && kernel.group() == 0x05
            {
                let subject = &chosen.subject;
                if let (Some(thread), Some(process)) =
                    (subject.threads().next(), subject.processes().next())
                {
                    needs.owner(thread, process);
                }
            }
            if chosen.selected {
                needs.of(&record, chosen.kernel.as_ref(), &chosen.subject);
            }
            Ok::<_, etl_format::Error>(())
        })
    })?;
    needs.finish();
    Ok(needs)
}

/// What there is to say of one record.
struct Chosen<'a> {
    selected: bool,
    kernel: Option<Kernel<'a>>,
    subject: Subject,
    /// The thread and process that this record is the first to tell of.
    witness: Option<(u32, u32)>,
}

/// Says which records are selected, in time order. Two passes over a trace get the same answers.
struct Chooser {
    threads: Threads,
    moments: Moments,
    /// Whether the last event of the CLR was selected, by thread.
    clr: HashMap<u32, bool>,
}

impl Default for Chooser {
    fn default() -> Self {
        Chooser { threads: Threads::default(), moments: Moments::new(MOMENTS), clr: HashMap::new() }
    }
}

impl Chooser {
    fn look<'a>(
        &mut self,
        record: &Record<'a>,
        select: &mut impl FnMut(&Record<'_>, &Subject) -> bool,
    ) -> Chosen<'a> {
        let kernel = Kernel::of(record);
        let witness = self.threads.learn(record, kernel.as_ref());
        let subject = self.threads.subject(record, kernel.as_ref());
        let stack = kernel.as_ref().and_then(Kernel::stack_of);
        let clr_stack = is_clr_stack(record);
        let selected = select(record, &subject)
            || stack.is_some_and(|(timestamp, _, thread)| self.moments.kept(timestamp, thread))
            || (clr_stack && record.thread_id().is_some_and(|t| self.clr.get(&t) == Some(&true)));
        if is_clr(record)
            && !clr_stack
            && let Some(thread) = record.thread_id()
            && (self.clr.len() < MOST_THREADS || self.clr.contains_key(&thread))
        {
            self.clr.insert(thread, selected);
        }
        if selected && stack.is_none() {
            self.moments.keep(record.timestamp(), subject.threads());
        }
        Chosen { selected, kernel, subject, witness }
    }
}
